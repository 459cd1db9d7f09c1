"""Chat templates: what transformers makes of them, and what they may not do."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.llm.conftest import TEMPLATE, build_tokenizer
from voiceloop.errors import EngineError
from voiceloop.llm.text.rendering import Rendering, RenderingError
from voiceloop.llm.text.template import LONGEST_REASON, ChatTemplate
from voiceloop.types import Tool

pytestmark = pytest.mark.real

TOOL = {
    "type": "function",
    "function": {"name": "now", "description": "<the time> & more", "parameters": {"é": [1]}},
}
TURNS = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": st.text()}
    ),
    min_size=1,
    max_size=5,
)
EVERYTHING = """\
{%- for message in messages -%}
    {%- if message.role == 'nobody' -%}{{ raise_exception('no ' + message.role) }}{%- endif -%}
    {%- if loop.index > 3 -%}{%- break -%}{%- endif -%}
    {{ loop.index }}/{{ loop.length }} {{ loop.previtem.role if loop.previtem }} {{ loop.last }}
    {{ message.role }}: {{ message.content | trim }}{{ eos_token }}
{% else %}nothing
{% endfor %}
{{ tools | tojson(indent=2) if tools else 'no tools' }} {{ strftime_now('%Y') | length }}
{{ bos_token is defined }} {{ documents is none }} {{ enable_thinking }}
    {% if add_generation_prompt %}
assistant:
    {% endif %}
"""
"""What templates use of what transformers gives them."""
TEMPLATES = {
    "plain": TEMPLATE,
    "everything": EVERYTHING,
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}"
    "{% endfor %}",
    "namespace": "{% set ns = namespace(last='', n=0) %}{% for m in messages if m.role != 'tool' %}"
    "{% set ns.last = ns.last ~ m.role %}{% set ns.n = ns.n + 2 * loop.index0 %}{% endfor %}"
    "{{ ns.last }}{{ ns.n }}{{ '-' * ns.n }}",
    "macros": "{% macro turn(m, end='.') %}{{ m.role }}{{ end }}{% endmacro %}"
    "{% for m in messages %}{{ turn(m, end=';') }}{% endfor %}"
    "{% set whole %}{{ messages | map(attribute='role') | join(',') }}{% endset %}{{ whole }}",
    "recursive": "{% for x in [[messages], 1, [2, [3]]] recursive %}"
    "{{ loop(x) if x is sequence and x is not string and x is not mapping else x is mapping }}"
    "{{ loop.depth }}{% endfor %}",
    "dictionaries": "{% set d = dict(a=1, **{'b': messages | length}) %}{{ d | tojson }}"
    "{% for k, v in d.items() %}{{ k }}{{ v ** 2 }}{% endfor %}{{ dict.fromkeys(['x'], 2) }}",
    "comparisons": "{{ [1, 2] == [1, 2] }}{{ 1 < 2 < 3 }}{{ 'user' in messages[0].values() }}"
    "{{ messages | map(attribute='role') | unique | join(' ') }}{{ (1, 2) | max }}"
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}"
    "{% for m in messages if loop is defined and m.role is in ['user', 'tool'] %}{{ loop.index }}"
    "{% endfor %}{{ messages[0].content.strip().rsplit('a', 1) | first }}{{ '12' | int + 1 }}",
    "slices": "{% set rest = messages[1:] %}{{ rest[::-1] | tojson }}"
    "{{ (messages + rest) | length }}{% for m in messages | reverse %}{{ m.role | upper }}"
    "{{ cycler('a', 'b').next() }}{% endfor %}",
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer()


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("tools", [None, [TOOL]], ids=["alone", "tools"])
def test_a_dialogue_is_the_text_that_transformers_makes_of_it(
    tokenizer: Any, name: str, tools: Any
) -> None:
    text = TEMPLATES[name]
    ours = Rendering(text, tokenizer.special_tokens_map)

    @settings(max_examples=60)
    @given(TURNS, st.booleans())
    def same(turns: list[dict[str, str]], goes_on: bool) -> None:
        given = {"tools": tools, "add_generation_prompt": goes_on, "enable_thinking": False}
        theirs = tokenizer.apply_chat_template(turns, chat_template=text, tokenize=False, **given)
        assert ours.render(turns, **given) == theirs

    same()


def test_a_template_refuses_in_its_own_words(tokenizer: Any) -> None:
    with pytest.raises(RenderingError, match="no nobody"):
        Rendering(EVERYTHING, {}).render([{"role": "nobody", "content": ""}])


@pytest.mark.parametrize(
    "hostile",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__globals__['datetime'] }}",
        "{{ messages.append('x') }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ dict.__init__.__globals__ }}{{ dict.__class__ }}",
        "{% set ns = namespace(a=1) %}{% set ns.__class__ = 1 %}",
        "{{ lipsum.__globals__ }}",
        "{% include 'chat_template.jinja' %}",
    ],
)
def test_a_template_reaches_nothing_but_what_it_is_given(hostile: str) -> None:
    try:
        shown = Rendering(hostile, {}).render([{"role": "user", "content": "Hello!"}])
    except RenderingError:
        return
    assert shown == ""


ENDLESS = {
    "two loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "a macro that calls itself twice": "{% macro f(n) %}{{ f(n - 1) ~ f(n - 1) if n else '' }}"
    "{% endmacro %}{{ f(60) }}",
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
def test_a_template_without_end_is_cut_off(name: str) -> None:
    """And the next one is rendered, though the process that renders had to be ended."""
    with pytest.raises(RenderingError, match="comes to no end"):
        Rendering(ENDLESS[name], {}, seconds=0.5).render([])
    assert Rendering("{{ 1 + 1 }}", {}).render([]) == "2"


DOUBLED = (
    "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}"
    "{% set ns.a, ns.b = [ns.a, ns.a], [ns.b, ns.b] %}{% endfor %}"
)
LARGE = {
    "text times a number": "{{ 'a' * 9000000000 }}",
    "a power": "{{ 10 ** (10 ** 9) }}",
    "text twice": "{% set ns = namespace(s='ab') %}{% for i in range(99) %}"
    "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "a list and itself": "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}"
    "{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "a macro": "{% macro f(s) %}{{ f(s ~ s) }}{% endmacro %}{{ f('ab') }}",
    "a filter's width": "{{ '%200000000d' | format(1) }}",
    "joined": "{{ (['a' * 9999] * 9999) | join }}",
    "entries in entries": "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}"
    "{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
    "one text again and again": "{% set s = 'a' * 4000000 %}{% for i in range(2000) %}{{ s }}"
    "{% endfor %}",
    "two that look alike": DOUBLED + "{{ ns.a == ns.b }}",
    "the whole": "{% for i in range(9999) %}{{ 'a' * 9999 }}{% endfor %}",
}  # fmt: skip


LIMITED = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory")


@LIMITED
@pytest.mark.parametrize("name", LARGE)
def test_a_template_makes_nothing_that_fills_the_memory(name: str) -> None:
    """Most of it finds no room; what takes long before it would is cut off."""
    with pytest.raises(RenderingError, match=r"too large|[Rr]ange too big|comes to no end"):
        Rendering(LARGE[name], {}, seconds=1.0).render([])


def test_dialogues_on_several_threads_are_not_mixed_up() -> None:
    rendering = Rendering("{% for m in messages %}{{ m }}{% endfor %}", {})
    with ThreadPoolExecutor(4) as pool:
        made = pool.map(lambda number: rendering.render([number] * 9), range(99))  # type: ignore[list-item]
    assert [*made] == [str(number) * 9 for number in range(99)]


RAISING = {
    "a division": "{{ 1 // 0 }}",
    "a macro": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "nesting": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "a type": "{{ messages + 1 }}",
    "too much": "{{ 'a' * 9000000000 }}",
    "syntax": "{% for m in messages %}{{ m['content'] ",
    "a file": "{% include 'x' %}",
    "a long text": "{{ raise_exception('no' * 5000) }}",
    "lines": "{{ raise_exception('one\\ntwo') }}",
}


@pytest.mark.parametrize("name", RAISING)
def test_whatever_a_template_raises_is_one_line(name: str) -> None:
    tokenizer: Any = build_tokenizer(RAISING[name] + TEMPLATE)
    with pytest.raises(
        EngineError, match="the chat template of 'a model' cannot be used"
    ) as caught:
        ChatTemplate(tokenizer, "a model")
    message = caught.value.message
    assert "\n" not in message and len(message) < LONGEST_REASON + 100 and caught.value.hint


LOOK = Tool("look", "See what is there.", {"type": "object"})
OTHER = TEMPLATE.replace("'<|im_end|>", "'!<|im_end|>")
WITH_TOOLS = "{{ tools | tojson if tools else '' }}" + TEMPLATE


@pytest.mark.parametrize(
    ("named", "plain"),
    [
        ({"default": TEMPLATE, "rag": OTHER}, TEMPLATE),
        ({"rag": OTHER, "default": TEMPLATE, "tool_use": WITH_TOOLS}, TEMPLATE),
        ({"rag": TEMPLATE}, TEMPLATE),
        ({"rag": OTHER, "tool_use": WITH_TOOLS}, TEMPLATE),
        ({"tool_use": WITH_TOOLS}, TEMPLATE),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_of_several_templates_the_usual_one_is_taken(named: dict[str, str], plain: str) -> None:
    tokenizer: Any = build_tokenizer()
    tokenizer.chat_template = named
    found, expected = ChatTemplate(tokenizer, "a"), ChatTemplate(build_tokenizer(plain), "a")
    assert found.opening("Be brief.") == expected.opening("Be brief.")
    assert found.reply_to_user == expected.reply_to_user
    told = tokenizer.decode(found.opening("", [LOOK]))
    assert ("See what is there." in told) == ("tool_use" in named)


def test_the_form_of_a_call_has_no_braces_too_many() -> None:
    form = r"{\"name\": <function-name>, \"arguments\": <args-json-object>}"
    said = f'{{% if tools %}}{{{{ "Write {{{form}}}. " }}}}{{% endif %}}'
    tokenizer: Any = build_tokenizer(said + TEMPLATE)
    told = tokenizer.decode(ChatTemplate(tokenizer, "a").opening("", [LOOK]))
    assert told.startswith('Write {"name": <function-name>, "arguments": <args-json-object>}. ')


def test_calls_begin_with_a_mark_json_or_a_fence_and_with_no_end_of_a_reply() -> None:
    tokenizer: Any = build_tokenizer()
    template = ChatTemplate(tokenizer, "a")
    begin = {tokenizer.convert_ids_to_tokens(token) for token in template.call_beginnings}
    assert {"<tool_call>", "{", "<", "`", "["} <= begin
    assert not begin & {"<|im_end|>", "<|im_start|>", "a", "."}


def test_of_several_templates_without_a_usual_one_none_is_guessed() -> None:
    tokenizer: Any = build_tokenizer()
    tokenizer.chat_template = {"rag": TEMPLATE, "plain": OTHER}
    with pytest.raises(EngineError, match=r"of several \(plain, rag\) none is called default"):
        ChatTemplate(tokenizer, "a")
