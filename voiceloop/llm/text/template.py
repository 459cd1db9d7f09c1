"""Cut a model's chat template into pieces of token ids that can be concatenated.

Chat templates render whole dialogues. A new turn may change the text of earlier turns, because
templates trim, merge and remove text. So the template is rendered a few times with placeholders as
contents. The text between two placeholders becomes token ids that are used in all dialogues. The
token ids of contents never change. This module knows no caches.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import groupby, takewhile
from typing import Any, cast

from voiceloop.errors import EngineError
from voiceloop.llm.text.calls import CALLS, SPELLING
from voiceloop.llm.text.leaks import without
from voiceloop.llm.text.messages import OKAY, OWN_CALL
from voiceloop.llm.text.parts import RESULTS, THOUGHTS
from voiceloop.llm.text.rendering import Rendering, RenderingError
from voiceloop.types import Past, Tool, ToolCall, spaced

MARKS = ".?!。？！؟।"  # noqa: RUF001 - as they are written elsewhere
"""Punctuation that ends a sentence, in any script."""
BREAKS = "\n", "\n\n"
"""Line breaks that may share a token with a mark before them, as in Qwen's vocabulary."""
LONGEST_REASON = 200
"""Maximum number of characters quoted from an error of a template."""
_CALL_FORMAT = r"{\"name\": <function-name>, \"arguments\": <args-json-object>}"
"""The form of a call, as templates of Qwen2.5 describe it to the model. Templates of Qwen2.5-Coder
put one more pair of braces around it. Then the model writes calls that it does not recognise later,
and repeats itself."""
_BEGINS_CALL = re.compile(r"[\s▁ĠĊ]*(?!<0x..>)[<{\[`]")
"""Matches the text of a token that may begin a call: a mark, JSON, or a code fence. Blanks may come
first, also in the forms that vocabularies use, such as `Ġ`. Tokens for single bytes, such as
`<0x0A>`, do not match."""
_USER, _ASSISTANT, _NEXT = "\ue000user\ue001", "\ue000reply\ue001", "\ue000next\ue001"
_CALL_ID = "call{:05}"
"""Format of call ids: nine letters and digits, as Mistral's templates require."""
_BEFORE_CALL = re.compile(r"([<\[]\S{2,}?)\s*\[?\s*$")
_BEHIND_CALL = re.compile(r"[\s}\]]*([<\[]\S{2,})\s*$")
"""Patterns of the mark before a call and of the mark after it. Brackets of a JSON list or object
may stand between the mark and the call."""


def special_tokens(tokenizer: Any) -> dict[int, str]:
    """Return the special tokens by id. Special tokens steer a model and are not text."""
    added = tokenizer.added_tokens_decoder
    return {index: token.content for index, token in added.items() if token.special}


class ChatTemplate:
    """The chat template of `tokenizer`, as pieces of token ids that stand around the contents of
    turns.

    The attributes are these pieces, and facts about the template. Each is found out only once.
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
        plain, with_tools = self._written(tokenizer.chat_template)
        self._plain = self._compiled(plain)
        self._with_tools = self._plain if with_tools == plain else self._compiled(with_tools)
        """The template for dialogues with tools."""
        between, after = self._around(self._turns(("user", _NEXT)), _ASSISTANT, _NEXT)
        self._between, self._after = between, after
        self._before_past = self._around(self._turns(("user", _NEXT)), _USER, _ASSISTANT)[0]
        """Text from the end of the user's text to an earlier reply. It may lack the empty thought
        with which a new reply begins."""
        self.reply_to_user = self.encode(between)
        """Tokens from the end of a reply to the start of the user's next text."""
        self.user_to_reply = self.encode(after)
        """Tokens from the end of the user's text to the start of the reply."""
        self.closing = self._closing(between)
        """The token that the template writes after a reply, as a set of at most one."""
        self.ends = self._ends(between, after)
        """Tokens that may follow the user's last word if the turn is over, in ascending order."""
        self.thinks_first = any(after.rfind(a) > after.rfind(b) for a, b in THOUGHTS.items())
        """Whether a reply begins inside a thought."""
        self.call = self._call_marks()
        """Marks that begin and end a tool call; empty strings if the template has none."""

    def writes(self, token: str) -> bool:
        """Return whether the template writes `token` outside of the contents of turns."""
        return token in self._render(self._turns(("user", _NEXT)))

    @property
    def takes_system(self) -> bool:
        """Whether the template has a place for a system prompt."""
        turns = [{"role": "user", "content": _USER}]
        try:
            text = self._render([{"role": "system", "content": _NEXT}, *turns])
        except EngineError:
            return False
        return _NEXT in text.partition(_USER)[0]

    def opening(self, system: str, tools: Sequence[Tool] = ()) -> list[int]:
        """Return the tokens before the user's first text, with the `system` prompt and `tools`.
        Some templates do not mention tools."""
        turns = [{"role": "user", "content": _USER}]
        plain = self._render(turns, tools).partition(_USER)[0]
        if not system:
            return self.encode(plain)
        both = [{"role": "system", "content": system}, *turns]
        try:
            text = self._render(both, tools).partition(_USER)[0]
        except EngineError:
            text = ""
        # A template without a system role fails or drops `system`. Then the first turn begins with
        # the system prompt.
        return self.encode(text if system.strip() in text else f"{plain}{system}\n\n")

    def content(self, text: str) -> list[int]:
        """Return the tokens of the user's `text`, tokenised together with the template's text
        before it. Names of special tokens are removed, because nobody says them."""
        text = self.harmless(text)
        before, whole = self.reply_to_user, self.encode(self._between + text)
        # No known tokenizer merges the content's first token with the text before it.
        return whole[len(before) :] if whole[: len(before)] == before else self.encode(text)

    def tool_results(self, returned: Sequence[tuple[str, str]]) -> list[int]:
        """Return the tokens from the end of a reply with calls to the start of its continuation.

        `returned` holds the name and the result of each tool, in the order of the calls.
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
        if text == self._render(turns[:2]).partition(_ASSISTANT)[2]:
            # The template writes results only behind calls.
            calling = self._calling((name, {}) for name, _ in returned)
            text = self._render([turns[0], calling, *turns[2:]])
            begins = [at for mark in RESULTS if (at := text.find(mark)) >= 0]
            text = text[min(begins, default=0) :]
        return self.encode(text)

    def calls(self, calls: Sequence[ToolCall]) -> list[int]:
        """Return the tokens of `calls` as the model writes them. Return none if the template cannot
        write calls."""
        calling = self._calling([(call.name, call.arguments) for call in calls])
        try:
            text = self._render([{"role": "user", "content": _USER}, calling]).partition(_USER)[2]
        except EngineError:  # a template may do anything to a call that it does not expect
            return []
        text = self._reply_in(text)
        return self.encode(text) if all(call.name in text for call in calls) else []

    def called(self, called: Sequence[tuple[ToolCall, str]]) -> list[int]:
        """Return the token ids of calls and their results in a reply; none if the template cannot
        write calls. If rules made the calls, `OKAY` follows, since no reply may be empty."""
        ids = self.calls([call for call, _ in called])
        if ids:
            ids += self.tool_results([(call.name, result) for call, result in called])
        return ids + self.encode(OKAY) if called[-1][0].name.startswith(OWN_CALL) else ids

    def words(self, texts: Iterable[str]) -> list[int]:
        """Return the token ids of a reply's spoken text. `texts` are the pieces of that text."""
        return self.encode(self.harmless(spaced(texts)))

    def exchange(self, past: Past) -> list[int]:
        """Return the token ids of a past exchange: the user's text, the reply, and the template's
        tokens up to the user's next text.

        Calls in the reply are in the model's own notation. Their results follow them.
        """
        ids = self.content(past.said) + self.user_to_reply
        for spoken, parts in groupby(past.replied, lambda part: isinstance(part, str)):
            if spoken:
                ids += self.words(cast("Iterable[str]", parts))
                continue
            ids += self.called(list(cast("Iterable[tuple[ToolCall, str]]", parts)))
        return ids + self.reply_to_user

    def call_of(self, names: Collection[str]) -> list[int]:
        """Return the tokens with which every call of a tool in `names` begins. Return none if the
        calls have no common beginning, or if replies begin with a thought."""
        made = [ToolCall(0, "", name, given) for name in names for given in ({}, {"x": 0})]
        written = [self.calls([call]) for call in made]
        if self.thinks_first:
            return []
        shared = takewhile(lambda ids: len(set(ids)) == 1, zip(*written, strict=False))
        return [ids[0] for ids in shared]

    @cached_property
    def call_beginnings(self) -> frozenset[int]:
        """The tokens with which a call begins, in all notations. Empty if replies begin with a
        thought."""
        if self.thinks_first:
            return frozenset()
        marks = {*CALLS, *SPELLING, *self.call}
        return frozenset(
            token
            for word, token in self._tokenizer.get_vocab().items()
            if _BEGINS_CALL.match(word) and (word in marks or word not in self._special)
        )

    def _reply_in(self, text: str) -> str:
        """Return the reply in `text`, which is the rendered text after the user's turn.

        The reply ends before the special token that closes it. Return an empty text if the template
        has no such token.
        """
        text = self._from_reply(text)
        closing = [token for token in self._special if token in self._between]
        if not closing:
            return ""
        results = [mark for mark in RESULTS if mark in self._special]
        ends = (min(closing, key=self._between.find), *results)
        return text[: min(at for end in ends if (at := f"{text}{ends[0]}".find(end)) >= 0)]

    def _from_reply(self, text: str) -> str:
        """Return the text from the beginning of a reply, out of the text behind the user's."""
        before = next((one for one in (self._after, self._before_past) if text.startswith(one)), "")
        return text.removeprefix(before)

    @staticmethod
    def _calling(calls: Iterable[tuple[str, Mapping[str, object]]]) -> dict[str, Any]:
        """Return a turn of the assistant that consists of `calls`: names and arguments."""
        tool_calls = [
            {
                "type": "function",
                "id": _CALL_ID.format(index),
                "function": {"name": name, "arguments": dict(arguments)},
            }
            for index, (name, arguments) in enumerate(calls)
        ]
        return {"role": "assistant", "content": "", "tool_calls": tool_calls}

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`, without added special tokens."""
        # Callers that know the model's context check the length, so no warning is needed here.
        return self._tokenizer.encode(text, add_special_tokens=False, verbose=False)

    def harmless(self, text: str) -> str:
        """Remove the names of special tokens from `text`."""
        longest = max(map(len, self._special), default=0)
        return without(self._names, text, longest) if longest else text

    @cached_property
    def _names(self) -> re.Pattern[str]:
        """Pattern of the names of special tokens."""
        return re.compile("|".join(map(re.escape, sorted(self._special, key=len, reverse=True))))

    def _ends(self, between: str, after: str) -> tuple[int, ...]:
        """Return the tokens that may follow the last word of a user's turn: final punctuation, and
        the tokens that end the turn.

        Most models were trained only on turns that end with punctuation, so they expect it first. A
        mark and the text or the line breaks after it may be one token. So each mark is tokenised
        together with the text around it.
        """
        before = self.encode(f"{between}yes")
        special = set(special_tokens(self._tokenizer))
        ends = set(self.user_to_reply[:1])
        # A line break may stand before the token that closes the turn.
        ends.update([one for one in self.user_to_reply if one in special][:1])
        for mark in ("", *MARKS):
            for rest in ("", after, *(BREAKS if mark else ())):
                ids = self.encode(f"{between}yes{mark}{rest}")
                first = ids[len(before) : len(before) + 1]
                # A token with only some of a mark's bytes may begin other characters.
                if ids[: len(before)] == before and mark in self._tokenizer.decode(first):
                    ends.update(first)
        return tuple(sorted(ends))

    def _closing(self, between: str) -> frozenset[int]:
        """Return the token that the template writes after a reply, as a set of at most one token.

        End tokens in the model's other files do not count. The token is the one after the last
        reply of a dialogue, as in training. After earlier replies, some templates write a token
        that ends only a part of a reply. If nothing follows the last reply, the token is the one
        that begins the user's next turn.
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
        """Return the mark before a call and the mark after it, as the template writes them. Return
        two empty strings if it writes none, or one of `CALLS`."""
        calling = self._calling([(_NEXT, {"x": _NEXT})])
        try:
            text = self._render([{"role": "user", "content": _USER}, calling])
        except EngineError:  # a template may do anything to a call that it does not expect
            return "", ""
        text = text.partition(_USER)[2]
        before, found, _ = self._from_reply(text).partition(_NEXT)
        if not found or any(mark in before for mark in CALLS):
            return "", ""
        begin = _BEFORE_CALL.search(before.partition("{")[0])
        behind = self._reply_in(text).rpartition(_NEXT)[2]
        end = _BEHIND_CALL.search(behind)
        return (begin[1], end[1] if end else "") if begin else ("", "")

    def _turns(self, *last: tuple[str, str]) -> list[dict[str, str]]:
        turns = (("user", _USER), ("assistant", _ASSISTANT), *last)
        return [{"role": role, "content": content} for role, content in turns]

    def _around(self, turns: list[dict[str, str]], first: str, second: str) -> tuple[str, str]:
        """Return the text between two placeholders, and the text after the second one."""
        _, found, rest = self._render(turns).partition(first)
        between, found_too, after = rest.partition(second)
        if not found or not found_too:
            raise self._unusable("it leaves a turn out")
        return between, after

    def _written(self, template: str | Mapping[str, str]) -> tuple[str, str]:
        """Return two templates: one for dialogues without tools and one for dialogues with tools.
        `template` is one text for both, or maps names to texts."""
        if isinstance(template, str):
            return template, template
        named = [*template] if len(template) == 1 else ["default", "tool_use"]
        plain = next((template[name] for name in named if name in template), None)
        if plain is None:
            names = ", ".join(sorted(template))
            raise self._unusable(f"of several ({names}) none is called default")
        return plain, template.get("tool_use", plain)

    def _compiled(self, text: str) -> Rendering:
        text = text.replace(f"{{{_CALL_FORMAT}}}", _CALL_FORMAT)
        try:
            return Rendering(text, self._tokenizer.special_tokens_map)
        except RenderingError as error:
            raise self._unusable(_reason(error)) from error

    def _render(
        self,
        turns: Sequence[Mapping[str, Any]],
        tools: Sequence[Tool] = (),
        *,
        goes_on: bool = True,
    ) -> str:
        """Return the text of the dialogue `turns`. With `goes_on`, the text ends where the next
        reply begins."""
        rendering = self._with_tools if tools else self._plain
        try:
            return rendering.render(
                turns,
                tools=[{"type": "function", "function": asdict(tool)} for tool in tools] or None,
                add_generation_prompt=goes_on,
                enable_thinking=False,
            )
        except RenderingError as error:
            raise self._unusable(_reason(error)) from error

    def _unusable(self, why: str) -> EngineError:
        roles = "turns of user, assistant and tool"
        return EngineError(
            f"the chat template of '{self._name}' cannot be used: {why}",
            f"choose a model whose template takes {roles}",
        )


def _reason(error: RenderingError) -> str:
    """Return an error's message, cut to `LONGEST_REASON` characters."""
    reason = str(error)
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]} …"
