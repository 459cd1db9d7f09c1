"""Tool calls and thoughts by the templates of several families of models, each in small."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.llm.conftest import TEMPLATE, build_tokenizer
from voiceloop.llm.text.output import CallOutput, Output
from voiceloop.llm.text.template import ChatTemplate
from voiceloop.types import Tool, ToolCall

pytestmark = pytest.mark.models

LOOK = Tool("look", "Looks around.", {"type": "object", "properties": {"place": {}}})
CHATML_CALLS = """\
{%- for message in messages -%}
{{- '<|im_start|>' + ('user' if message.role == 'tool' else message.role) + '\\n' -}}
{%- if message.role == 'tool' -%}
{{- '<tool_response>\\n' + message.content + '\\n</tool_response>' -}}
{%- else -%}{{- message.content -}}{%- endif -%}
{%- for call in message.tool_calls or [] -%}
{{- '\\nBEGIN\\n{"name": "' + call.function.name + '", "arguments": ' -}}
{{- call.function.arguments | tojson + '}\\nEND' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
QWEN = CHATML_CALLS.replace("BEGIN", "<tool_call>").replace("END", "</tool_call>")
OWN = CHATML_CALLS.replace("BEGIN", "<|acts|>").replace("END", "<|acted|>")
LLAMA = """\
{%- if tools -%}{{- 'You may call: ' + tools | tojson -}}{%- endif -%}
{%- for message in messages -%}
{%- set role = 'ipython' if message.role == 'tool' else message.role -%}
{{- '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' -}}
{%- if message.tool_calls -%}
{%- if message.tool_calls | length > 1 -%}{{- raise_exception('one call only') -}}{%- endif -%}
{%- set call = message.tool_calls[0].function -%}
{{- '{"name": "' + call.name + '", "parameters": ' + call.arguments | tojson + '}' -}}
{%- elif message.role == 'tool' -%}{{- message.content | tojson -}}
{%- else -%}{{- message.content -}}{%- endif -%}
{{- '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
{%- endif -%}
"""
MISTRAL = """\
{%- for message in messages -%}
{%- if message.role == 'system' -%}{{- raise_exception('no system turns') -}}{%- endif -%}
{%- if message.role == 'user' -%}
{%- if tools and loop.last -%}
{{- '[AVAILABLE_TOOLS]' + tools | tojson + '[/AVAILABLE_TOOLS]' -}}
{%- endif -%}
{{- '[INST]' + message.content + '[/INST]' -}}
{%- elif message.tool_calls -%}
{{- '[TOOL_CALLS] [' -}}
{%- for call in message.tool_calls -%}
{%- if call.id | length != 9 -%}{{- raise_exception('nine letters') -}}{%- endif -%}
{{- call.function | tojson | replace('}}', '}, "id": "' + call.id + '"}') -}}
{{- '' if loop.last else ', ' -}}
{%- endfor -%}
{{- ']</s>' -}}
{%- elif message.role == 'tool' -%}
{%- if message.tool_call_id | length != 9 -%}{{- raise_exception('nine letters') -}}{%- endif -%}
{{- '[TOOL_RESULTS]' + message.content + '[/TOOL_RESULTS]' -}}
{%- else -%}{{- message.content + '</s>' -}}{%- endif -%}
{%- endfor -%}
"""
NEWER = (
    MISTRAL.replace(
        "{{- call.function | tojson | replace('}}', '}, \"id\": \"' + call.id + '\"}') -}}",
        "{{- call.function.name + '[ARGS]' + call.function.arguments | tojson -}}",
    )
    .replace("' ['", "''")
    .replace("'[TOOL_CALLS] ['", "'[TOOL_CALLS]'")
    .replace("']</s>'", "'</s>'")
)
MINICPM = """\
{%- for message in messages -%}
{{- '<|im_start|>' + ('user' if message.role == 'tool' else message.role) + '\\n' -}}
{{- '<tool_response>' + message.content if message.role == 'tool' else message.content -}}
{%- for call in message.tool_calls or [] -%}
{{- '<function name="' + call.function.name + '">' -}}
{%- for key, value in call.function.arguments.items() -%}
{{- '<param name="' + key + '">' -}}
{{- '<![CDATA[' + value + ']]>' if '<' in value else value -}}{{- '</param>' -}}
{%- endfor -%}
{{- '</function>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if enable_thinking is false -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}
"""
GEMMA = """\
{%- set last = namespace(result=false) -%}
{%- for message in messages -%}
{%- if message.role != 'tool' -%}
{%- set last.result = false -%}
{{- '<|turn>' + message.role + '\\n' -}}
{%- for call in message.tool_calls or [] -%}
{{- '<|tool_call>call:' + call.function.name + '{' -}}
{%- for key, value in call.function.arguments.items() -%}
{{- key + ':<|"|>' + value + '<|"|>' -}}{%- if not loop.last -%},{%- endif -%}
{%- endfor -%}
{{- '}<tool_call|>' -}}
{%- endfor -%}
{%- if message.tool_calls and not loop.last -%}
{%- for result in messages[loop.index:] if result.role == 'tool' -%}
{%- set last.result = true -%}
{{- '<|tool_response>response:' + result.name + '{value:<|"|>' + result.content -}}
{{- '<|"|>}<tool_response|>' -}}
{%- endfor -%}
{%- elif message.tool_calls -%}{{- '<|tool_response>' -}}
{%- else -%}{{- message.content + '<turn|>\\n' -}}{%- endif -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt and not last.result -%}
{{- '<|turn>assistant\\n<|channel>thought\\n<channel|>' -}}
{%- endif -%}
"""
SPECIAL = {
    QWEN: [],
    OWN: ["<|acts|>", "<|acted|>"],
    LLAMA: ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"],
    MISTRAL: ["[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "</s>"],
    NEWER: ["[INST]", "[/INST]", "[TOOL_CALLS]", "[ARGS]", "</s>"],
    MINICPM: ["<think>", "</think>", "<function", "<param", "</param>", "</function>"],
    GEMMA: [
        *("<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>"),
        *("<|tool_response>", "<tool_response|>", '<|"|>'),
    ],
}
FAMILIES = pytest.mark.parametrize(
    "family", SPECIAL, ids="qwen own llama mistral newer minicpm gemma".split()
)


def made(family: str) -> tuple[Any, ChatTemplate]:
    tokenizer = build_tokenizer(family)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL.get(family, [])})
    return tokenizer, ChatTemplate(tokenizer, "a model")


def dialogue(tokenizer: Any, *turns: dict[str, Any], ask: bool = False) -> str:
    return tokenizer.apply_chat_template(
        list(turns), tokenize=False, add_generation_prompt=ask, enable_thinking=False
    )


def calling(*places: str) -> dict[str, Any]:
    functions = [{"name": "look", "arguments": {"place": place}} for place in places]
    calls = [
        {"type": "function", "id": f"abcdefgh{index}", "function": function}
        for index, function in enumerate(functions)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


USER = {"role": "user", "content": "Where?"}


def answered(tokenizer: Any, turn: dict[str, Any]) -> str:
    """What a template writes for a turn that answers `USER`, without what stands before it."""
    before = dialogue(tokenizer, USER, {"role": "assistant", "content": "@"}).partition("@")[0]
    whole = dialogue(tokenizer, USER, turn)
    return whole.removeprefix(dialogue(tokenizer, USER, ask=True)).removeprefix(before)


@FAMILIES
@pytest.mark.parametrize("places", [("here",), ("here", 'a "}" {b'), ("x", "y", "z")])
def test_calls_of_a_history_stand_as_the_template_writes_them(
    family: str, places: tuple[str, ...]
) -> None:
    if family == LLAMA and len(places) > 1:
        pytest.skip("it writes one")
    tokenizer, template = made(family)
    calls = [ToolCall(0, "any", "look", {"place": place}) for place in places]
    ids = template.calls(calls)
    written = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    turn = calling(*places)
    for index, call in enumerate(turn["tool_calls"]):
        call["id"] = f"call0000{index}"
    whole = answered(tokenizer, turn)
    assert whole.startswith(written) and written.count("look") == len(places)
    assert not any(place in whole[len(written) :] for place in places)
    output = Output(tokenizer, call=template.call)
    items = [item for token in ids for item in output.push([token])] + output.finish()
    read = [item for item in items if isinstance(item, CallOutput)]
    assert [one.arguments for one in read] == [call.arguments for call in calls]


@FAMILIES
def test_results_go_back_as_the_template_has_them(family: str) -> None:
    tokenizer, template = made(family)
    results = [("look", '{"seen": "a <|im_end|>cat"}'), ("look", "nothing")]
    ids = template.tool_results(results)
    turns = [
        {"role": "tool", "name": name, "tool_call_id": f"call0000{index}", "content": content}
        for index, (name, content) in enumerate([("look", '{"seen": "a cat"}'), results[1]])
    ]
    said, mark = {"role": "assistant", "content": "@"}, "@"
    if family == GEMMA:  # it has results only behind calls
        said, mark = calling("@"), '@<|"|>}<tool_call|>'
    after = dialogue(tokenizer, USER, said, *turns, ask=True).partition(mark)[2]
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == after
    assert "seen" in after and "nothing" in after


def test_marks_of_its_own_are_read_off_a_template() -> None:
    marks = {family: made(family)[1].call for family in SPECIAL}
    assert marks[QWEN] == ("", "")  # known without
    assert marks[OWN] == ("<|acts|>", "<|acted|>")
    assert marks[LLAMA] == marks[MINICPM] == marks[GEMMA] == ("", "")
    assert marks[MISTRAL] == marks[NEWER] == ("", "")
    assert made(TEMPLATE)[1].call == ("", "")


def test_tools_are_described_by_a_template_that_does_so() -> None:
    for family, described in ((LLAMA, True), (QWEN, False)):
        tokenizer, template = made(family)
        opening = str(tokenizer.decode(template.opening("", [LOOK])))
        assert (json.dumps(LOOK.description) in opening) == described


def test_whether_a_model_takes_a_system_prompt_is_read_off_its_template() -> None:
    taking = {family: made(family)[1].takes_system for family in SPECIAL}
    assert taking == {family: family not in (MISTRAL, NEWER) for family in SPECIAL}


@pytest.mark.parametrize("mark", ["<think>", "[THINK]", "<reasoning>", "<|channel>"])
def test_whether_a_reply_begins_in_a_thought_is_read_off_a_template(mark: str) -> None:
    opening = TEMPLATE.replace("assistant\\n' -}}{%- endif", f"assistant\\n{mark}' -}}}}{{%- endif")
    assert made(opening)[1].thinks_first
    assert not made(TEMPLATE)[1].thinks_first
