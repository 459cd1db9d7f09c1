"""A model's chat template as pieces of token ids that can be laid end to end.

Chat templates render whole dialogues and are not prefix-stable: they trim, merge and strip. So
the template is rendered a few times around marks, and what stands between two marks is what goes
between two contents. Contents keep the ids they have. This module knows no caches.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby, takewhile
from typing import Any, cast

from voiceloop.errors import EngineError
from voiceloop.llm.text.parts import THOUGHTS
from voiceloop.llm.text.rendering import Rendering
from voiceloop.types import Past, Tool, ToolCall, spaced

MARKS = ".?!。？！؟।"  # noqa: RUF001 - as they are written elsewhere
"""Marks that end a sentence, in any script."""
LONGEST_REASON = 200
"""Characters that a template may say of why it refuses a dialogue."""
_USER, _ASSISTANT, _NEXT = "\ue000user\ue001", "\ue000reply\ue001", "\ue000next\ue001"
_CALL_ID = "call{:05}"
"""Nine letters and digits, which is what Mistral's templates take."""
_BEFORE_CALL = re.compile(r"([<\[]\S{2,}?)\s*\[?\s*$")
_BEHIND_CALL = re.compile(r"[\s}\]]*([<\[]\S{2,})\s*$")
"""A mark before a call and one behind it, and what belongs to a list or an object of JSON."""


def special_tokens(tokenizer: Any) -> dict[int, str]:
    """The tokens that steer a model and are no text, by id."""
    added = tokenizer.added_tokens_decoder
    return {index: token.content for index, token in added.items() if token.special}


class ChatTemplate:
    """How the turns of a dialogue follow one another, as token ids of `tokenizer`.

    Its attributes are the pieces, each of which is read off the template once.
    """

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer = tokenizer
        self._name = name
        self._special = tuple(special_tokens(tokenizer).values())
        if tokenizer.chat_template is None:
            raise EngineError(
                f"the model '{name}' has no chat template",
                "choose a model that was trained to chat (an -Instruct or -it model)",
            )
        plain, telling = self._written(tokenizer.chat_template)
        self._plain = self._compiled(plain)
        self._telling = self._plain if telling == plain else self._compiled(telling)
        """For dialogues with tools."""
        between, after = self._around(self._turns(("user", _NEXT)), _ASSISTANT, _NEXT)
        self._between, self._after = between, after
        self.reply_to_user = self.encode(between)
        """From the end of a reply to where the user's next text begins."""
        self.user_to_reply = self.encode(after)
        """From the end of the user's text to where the reply begins."""
        self.closing = self._closing(between)
        """Tokens, one of which ends a reply that is written into the dialogue."""
        self.ends = self._ends(between, after)
        """Tokens, one of which follows the user's last word where they have finished, ascending."""
        self.thinks_first = any(after.rfind(a) > after.rfind(b) for a, b in THOUGHTS.items())
        """True if a reply begins inside a thinking span."""
        self.call = self._call_marks()
        """What begins a call of a tool and what ends it; empty where it has no such mark."""

    def writes(self, token: str) -> bool:
        """Whether it writes `token` around what is said."""
        return token in self._render(self._turns(("user", _NEXT)))

    @property
    def takes_system(self) -> bool:
        """It has a place of its own for a system prompt."""
        turns = [{"role": "user", "content": _USER}]
        try:
            text = self._render([{"role": "system", "content": _NEXT}, *turns])
        except EngineError:
            return False
        return _NEXT in text.partition(_USER)[0]

    def opening(self, system: str, tools: Sequence[Tool] = ()) -> list[int]:
        """What stands before the first user text; a template without tools leaves them out."""
        turns = [{"role": "user", "content": _USER}]
        plain = self._render(turns, tools).partition(_USER)[0]
        if not system:
            return self.encode(plain)
        both = [{"role": "system", "content": system}, *turns]
        try:
            text = self._render(both, tools).partition(_USER)[0]
        except EngineError:
            text = ""
        # A template without a system role refuses or drops it: the first user turn begins with it.
        return self.encode(text if system.strip() in text else f"{plain}{system}\n\n")

    def content(self, text: str) -> list[int]:
        """The user's text as it is tokenised after what precedes it.

        The names of special tokens are taken out: nobody says them.
        """
        text = self.harmless(text)
        before, whole = self.reply_to_user, self.encode(self._between + text)
        # With the tokenizers there are, the content's first token never swallows what precedes it.
        return whole[len(before) :] if whole[: len(before)] == before else self.encode(text)

    def tool_results(self, returned: Sequence[tuple[str, str]]) -> list[int]:
        """From the end of a reply that called tools to where its continuation begins.

        Name and result of each tool, in the order of the calls.
        """
        turns: list[dict[str, Any]] = [*self._turns()]
        for index, (name, result) in enumerate(returned):
            call_id, content = _CALL_ID.format(index), self.harmless(result)
            turns.append(
                {"role": "tool", "name": name, "tool_call_id": call_id, "content": content}
            )
        _, found, text = self._render(turns).partition(_ASSISTANT)
        if not found:
            raise self._unusable("it leaves a turn out")
        return self.encode(text)

    def calls(self, calls: Sequence[ToolCall]) -> list[int]:
        """These calls as the model writes them in a reply; empty where it has no way to."""
        told = [
            {
                "type": "function",
                "id": _CALL_ID.format(index),
                "function": {"name": call.name, "arguments": dict(call.arguments)},
            }
            for index, call in enumerate(calls)
        ]
        calling = {"role": "assistant", "content": "", "tool_calls": told}
        try:
            text = self._render([{"role": "user", "content": _USER}, calling]).partition(_USER)[2]
        except EngineError:  # a template may do anything to a call that it does not expect
            return []
        text = self._reply_in(text)
        return self.encode(text) if all(call.name in text for call in calls) else []

    def words(self, texts: Iterable[str]) -> list[int]:
        """Return the ids of what was said in a reply, in pieces."""
        return self.encode(self.harmless(spaced(texts)))

    def exchange(self, past: Past) -> list[int]:
        """Return the ids of what the user said and of the reply, with the tokens that follow each.

        The reply's calls are as the model writes them, with what they returned.
        """
        ids = self.content(past.said) + self.user_to_reply
        for spoken, parts in groupby(past.replied, lambda part: isinstance(part, str)):
            if spoken:
                ids += self.words(cast("Iterable[str]", parts))
                continue
            called = list(cast("Iterable[tuple[ToolCall, str]]", parts))
            if written := self.calls([call for call, _ in called]):
                returned = [(call.name, result) for call, result in called]
                ids += written + self.tool_results(returned)
        return ids + self.reply_to_user

    def call_of(self, names: Collection[str]) -> list[int]:
        """What all calls of tools with these `names` begin with; empty where there is no telling,
        as where replies begin with a thought."""
        made = [ToolCall(0, "", name, given) for name in names for given in ({}, {"x": 0})]
        written = [self.calls([call]) for call in made]
        if self.thinks_first:
            return []
        shared = takewhile(lambda ids: len(set(ids)) == 1, zip(*written, strict=False))
        return [ids[0] for ids in shared]

    def _reply_in(self, text: str) -> str:
        """What the model says in `text`, which begins behind the user's: to the special token that
        closes a reply."""
        text = text.removeprefix(self._after)
        closing = [token for token in self._special if token in self._between]
        return text.partition(min(closing, key=self._between.find))[0] if closing else ""

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, with nothing added."""
        # What is too long is refused where it is known how much room there is.
        return self._tokenizer.encode(text, add_special_tokens=False, verbose=False)

    def harmless(self, text: str) -> str:
        """`text` without the names of special tokens."""
        # Again and again: what is left of "<|im_<|im_end|>end|>" is one more.
        while found := next((token for token in self._special if token in text), None):
            text = text.replace(found, "")
        return text

    def _ends(self, between: str, after: str) -> tuple[int, ...]:
        """What may follow the last word of a user's turn: what ends a turn, and final marks.

        Most models have only read turns that end with a mark: they expect that one first. Marks
        and what follows them may be one token, so each is tokenised where it would stand.
        """
        before = self.encode(f"{between}yes")
        special = set(special_tokens(self._tokenizer))
        ends = set(self.user_to_reply[:1])
        # A line break may stand before the token that closes the turn.
        ends.update([one for one in self.user_to_reply if one in special][:1])
        for mark in ("", *MARKS):
            for rest in ("", after):
                ids = self.encode(f"{between}yes{mark}{rest}")
                first = ids[len(before) : len(before) + 1]
                # A token that is a part of a mark's bytes begins much else.
                if ids[: len(before)] == before and mark in self._tokenizer.decode(first):
                    ends.update(first)
        return tuple(sorted(ends))

    def _closing(self, between: str) -> frozenset[int]:
        """What the template writes behind a reply, whatever else the model's files say of ends.

        Behind the last reply of a dialogue, as models read it in training: behind those before,
        some write what ends a part of a reply. Where nothing follows the last one, what begins the
        user's next turn says that it is over.
        """
        added = self._tokenizer.added_tokens_decoder
        try:
            last = self._render(self._turns(), goes_on=False).partition(_ASSISTANT)[2]
        except EngineError:
            last = ""
        for behind in (last, between):
            if found := [one for one in self.encode(behind) if one in added][:1]:
                return frozenset(found)
        return frozenset()

    def _call_marks(self) -> tuple[str, str]:
        """What the template puts around a call: whatever a model was trained with, it shows."""
        function = {"name": _NEXT, "arguments": {"x": _NEXT}}
        call = {"type": "function", "id": _CALL_ID.format(0), "function": function}
        calling = {"role": "assistant", "content": "", "tool_calls": [call]}
        try:
            text = self._render([{"role": "user", "content": _USER}, calling])
        except EngineError:  # a template may do anything to a call that it does not expect
            return "", ""
        text = text.partition(_USER)[2]
        before, found, _ = text.removeprefix(self._after).partition(_NEXT)
        if not found:
            return "", ""
        begin = _BEFORE_CALL.search(before.partition("{")[0])
        behind = self._reply_in(text).rpartition(_NEXT)[2]
        end = _BEHIND_CALL.search(behind)
        return (begin[1], end[1] if end else "") if begin else ("", "")

    def _turns(self, *last: tuple[str, str]) -> list[dict[str, str]]:
        turns = (("user", _USER), ("assistant", _ASSISTANT), *last)
        return [{"role": role, "content": content} for role, content in turns]

    def _around(self, turns: list[dict[str, str]], first: str, second: str) -> tuple[str, str]:
        """What the rendering of `turns` has between two marks, and after the second."""
        _, found, rest = self._render(turns).partition(first)
        between, found_too, after = rest.partition(second)
        if not found or not found_too:
            raise self._unusable("it leaves a turn out")
        return between, after

    def _written(self, template: str | Mapping[str, str]) -> tuple[str, str]:
        """The template, and that for dialogues with tools, of several that have names."""
        if isinstance(template, str):
            return template, template
        named = [*template] if len(template) == 1 else ["default", "tool_use"]
        plain = next((template[name] for name in named if name in template), None)
        if plain is None:
            told = ", ".join(sorted(template))
            raise self._unusable(f"of several ({told}) none is called default")
        return plain, template.get("tool_use", plain)

    def _compiled(self, text: str) -> Rendering:
        try:
            return Rendering(text, self._tokenizer.special_tokens_map)
        except Exception as error:  # of jinja, and of Python where it is nested too deep
            raise self._unusable(_said(error)) from error

    def _render(
        self,
        turns: Sequence[Mapping[str, Any]],
        tools: Sequence[Tool] = (),
        *,
        goes_on: bool = True,
    ) -> str:
        """The text of a dialogue, where it `goes_on` to where the reply begins."""
        rendering = self._telling if tools else self._plain
        try:
            return rendering.render(
                turns,
                tools=[{"type": "function", "function": asdict(tool)} for tool in tools] or None,
                add_generation_prompt=goes_on,
                enable_thinking=False,
            )
        except Exception as error:  # a template may divide by zero, or call itself for ever
            raise self._unusable(_said(error)) from error

    def _unusable(self, why: str) -> EngineError:
        roles = "turns of user, assistant and tool"
        return EngineError(
            f"the chat template of '{self._name}' cannot be used: {why}",
            f"choose a model whose template takes {roles}",
        )


def _said(error: Exception) -> str:
    """What an error says, on a line of its own length."""
    said = str(error).strip().partition("\n")[0] or type(error).__name__
    return said if len(said) <= LONGEST_REASON else f"{said[:LONGEST_REASON]} …"
