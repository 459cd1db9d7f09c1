"""Render a dialogue with a chat template, with jinja set up as chat templates expect.

Templates come from anyone who publishes a model, so they are not trusted. A template sees only its
arguments, and its time and the size of its values are limited. Without the time limit, an endless
loop in a template would keep voiceloop from starting.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, ClassVar, NoReturn, cast

from jinja2 import Template, TemplateError, TemplateRuntimeError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from voiceloop.llm.text import bounds

SECONDS = 5.0
"""Maximum processor time for rendering a dialogue, in seconds. Most take a few milliseconds."""
MOST = 16 * bounds.LARGEST
"""Maximum size of everything together that a template makes in one rendering."""


class Rendering:
    """A compiled chat template."""

    def __init__(
        self,
        text: str,
        named: Mapping[str, object],
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """Compile the template `text`.

        `named` maps the names of special tokens, such as `eos_token`, to the tokens. `clock`
        returns the time, in seconds, that is compared with the limit `SECONDS`. Raises the errors
        of jinja and Python for text that does not compile.
        """
        self._named = dict(named)
        self._environment = _Environment(clock)
        tree = _Bounded().visit(self._environment.parse(text))
        code = self._environment.compile(tree)
        given = self._environment.make_globals(None)
        self._compiled = Template.from_code(self._environment, code, given)

    def render(self, turns: Sequence[Mapping[str, Any]], **given: object) -> str:
        """Return the text of the dialogue `turns`. The template also sees the variables `given`.

        Raises TemplateError if the template refuses the dialogue or exceeds a limit. Any other
        error that is raised within the template is passed on.
        """
        self._environment.begin()
        variables = {**self._named, "documents": None, **given, "messages": turns}
        return self._compiled.render(variables)


class _Spent(threading.local):
    """What the rendering in this thread may still use."""

    until = 0.0
    """The time, on the clock of the thread, at which it is cut off."""
    made = 0
    """Size of what it has made."""


class _Environment(ImmutableSandboxedEnvironment):
    """An environment of jinja with the settings of transformers, and with limits of time and
    size."""

    intercepted_binops = frozenset(("*", "**", "%", "+"))

    def __init__(self, clock: Callable[[], float]) -> None:
        # `optimized=False` computes constants in `render`, because no limits apply in compiling.
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            extensions=[loopcontrols, _Generation],
        )
        self.filters["tojson"] = _to_json
        self.filters = {name: self._bounded(name, one) for name, one in self.filters.items()}
        self.tests = {name: self._bounded(name, one) for name, one in self.tests.items()}
        self.filters |= {
            "weighed": self._weighed,
            "counted": self._counted,
            "sized": self._sized,
            "printed": self._printed,
            "concatenated": self._concatenated,
        }
        self.globals |= {
            "dict": _Dictionaries(),
            "namespace": _PlainNamespace,
            "raise_exception": _refuse,
            "strftime_now": _now,
        }
        del self.globals["lipsum"]
        self._clock = clock
        self._spent = _Spent()

    def begin(self) -> None:
        """Start the limits of a rendering in this thread."""
        self._spent.until, self._spent.made = self._clock() + SECONDS, 0

    def call(self, context: Context, function: Any, /, *args: Any, **options: Any) -> Any:
        """Call `function` (a macro, a method, or a recursive loop) within the limits."""
        self._step()
        for value in map(self._weighed, (*args, *options.values())):
            if isinstance(value, int) and abs(value) > bounds.LARGEST:
                raise _too_large()
        method = getattr(function, "__wrapped__", function)  # the sandbox wraps `format`
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str):
            self._make(bounds.of_method(method.__name__, owner, *args, **options))
        if isinstance(function, LoopContext):
            args = (self._counted(args[0]), *args[1:])
        return self._sized(super().call(context, function, *args, **options))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute a sum, a product, a power or a formatted text within the limits."""
        self._make(bounds.product(operator, left, right))
        return super().call_binop(context, operator, left, right)

    def _bounded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the filter or test `name` with limits. It makes lists, because the size of an
        iterator is unknown. Some filters take jinja's state before the value."""
        first = int(hasattr(function, "jinja_pass_arg"))

        @wraps(function)
        def bounded(*args: Any, **named: Any) -> Any:
            self._step()
            self._make(bounds.of_filter(name, *args[first:], **named))
            made = function(*args, **named)
            return [*self._counted(made)] if isinstance(made, Iterator) else made

        return bounded

    def _step(self) -> None:
        if self._clock() > self._spent.until:
            raise TemplateRuntimeError("it comes to no end")

    def _make(self, size: int) -> None:
        """Count something of at most this size. Call this before it is made."""
        self._spent.made += size
        if size > bounds.LARGEST or self._spent.made > MOST:
            raise _too_large()

    def _counted(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self._step()
            yield item

    def _weighed(self, value: Any) -> Any:
        """Return `value`. Comparing, hashing or copying it may take work for all that is in it."""
        return self._sized(value, bounds.written)

    def _sized(self, value: Any, measure: Callable[[Any], int] = bounds.size) -> Any:
        if isinstance(value, bytes) or measure(value) > bounds.LARGEST:
            raise _too_large()
        return value

    def _printed(self, value: Any) -> Any:
        self._make(bounds.written(value))
        return value

    def _concatenated(self, values: Sequence[Any]) -> str:
        self._make(bounds.written(values))
        return "".join(map(str, values))


class _Bounded(NodeTransformer):
    """A transformer of a template's syntax tree. It makes loops check the time, and makes
    assignments, output and `~` check sizes."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "counted")
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Output:
        self.generic_visit(node)
        node.nodes = [cast(nodes.Expr, _filtered(one, "printed")) for one in node.nodes]
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        self.generic_visit(node)
        node.expr = _filtered(node.expr, "weighed")
        for operand in node.ops[:-1]:
            operand.expr = _filtered(operand.expr, "weighed")
        return node

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        self.generic_visit(node)
        return _filtered(node, "weighed") if node.ctx == "load" else node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes), "concatenated")

    def visit_Assign(self, node: nodes.Assign) -> nodes.Assign:
        self.generic_visit(node)
        node.node = _filtered(node.node, "sized")
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.AssignBlock:
        self.generic_visit(node)
        node.filter = _filtered(node.filter, "sized")
        return node


class _Generation(Extension):
    """The tag `generation`, which marks text to train a model on. Here the text is rendered like
    any other text."""

    tags: ClassVar = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the nodes between `generation` and `endgeneration`."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _PlainNamespace(Namespace):
    """A namespace without names that begin with an underscore, such as Python's own."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__()
        for name, value in dict(*args, **named).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if str(name).startswith("_"):
            raise SecurityError(f"a namespace takes no {name!r}")
        super().__setitem__(name, value)


class _Dictionaries:
    """A stand-in for `dict` that makes dictionaries and hides the attributes of the class."""

    def __call__(self, *args: Any, **named: Any) -> dict[Any, Any]:
        return dict(*args, **named)

    def fromkeys(self, keys: Iterable[Any], value: Any = None) -> dict[Any, Any]:
        """Return a dictionary that maps each of `keys` to `value`."""
        return dict.fromkeys(keys, value)


def _filtered(node: nodes.Node | None, name: str) -> nodes.Filter:
    return nodes.Filter(cast(Any, node), name, [], [], None, None)


def _too_large() -> TemplateRuntimeError:
    return TemplateRuntimeError("it makes something that is too large")


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)
