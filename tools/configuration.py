"""Write docs/configuration.md from voiceloop/settings/config.py. `make docs` runs it, and a test
checks it."""

from __future__ import annotations

import inspect
from pathlib import Path

from voiceloop.settings import config
from voiceloop.settings.config import meaning
from voiceloop.settings.files import GUARDED
from voiceloop.settings.presets import BEST_FIRST
from voiceloop.settings.schema import TOML, expected

INTRODUCTION = """\
# Configuration

<!-- Written by `make docs` from voiceloop/settings/config.py: change it there. -->

The value of a setting is taken from the first of these that has it:

1. a flag: `voiceloop ask question.wav --asr.model base.en`
2. the file named by `--config FILE`
3. `voiceloop.toml` in the current folder, [with exceptions](#a-file-in-the-current-folder)
4. `~/.config/voiceloop/config.toml` (or under `$XDG_CONFIG_HOME`)
5. the preset: `--preset small`, or `preset = "small"` in a file
6. the default

`voiceloop config` prints every setting, its value and the origin of the value. In a file, the part
before the dot is the section:

```toml
preset = "small"

[tts]
voice = "en-gb"
```

`voiceloop config --write` makes `~/.config/voiceloop/config.toml` to edit: every setting with a
comment, and commented out. `voiceloop config --write --tts.speed 1.2` sets a value in it, or in the
file of `--config`; what you wrote there stays. `voiceloop config --toml` only prints all settings.

## Completion

The shell completes commands, options and presets if it reads this script:

| shell | file | line |
|---|---|---|
| bash | `~/.bashrc` | `source <(voiceloop --print-completion bash)` |
| zsh | `~/.zshrc` | `source <(voiceloop --print-completion zsh)` |
| fish | `~/.config/fish/config.fish` | `voiceloop --print-completion fish \\| source` |
"""

ENGINES = """
## Settings of an engine's own

An engine from [another package](engines.md#an-engine-of-your-own) may have settings that voiceloop
does not know. They stand in the table `[asr.options]`, `[llm.options]` or `[tts.options]`:

```toml
[llm]
engine = "parrot"

[llm.options]
repeats = 3
```

The flags `--llm.engine parrot --llm.options.repeats 3` do the same. A wrong name is an error that
names the nearest one, and a wrong value an error that says what was expected. `voiceloop ask
--help-all --llm.engine parrot` lists the settings. The engines that come with voiceloop have none.
"""

FOUND = """
## A file in the current folder

`voiceloop.toml` applies to everybody who starts voiceloop in its folder, and somebody else may have
made that folder. So the file may not choose code to load, programs to run, weights or recordings to
read or download, or the limits of a server, nor tell the language model what to do, nor let one
question cost many replies. If it does, nothing is started, and one line names the keys. If you
trust the file, name it, and it may set everything: `--config voiceloop.toml`. The address of a
server, its keys and certificates, and the files that commands read and write are not settings: only
flags set them.

It may set neither """


def page() -> str:
    """Return the whole page."""
    text, values = INTRODUCTION, config.flatten(config.Config())
    section = None
    for key, hint in config.KEYS.items():
        name = key.rpartition(".")[0]
        owner = type(getattr(config.Config(), name) if name else config.Config())
        if name != section:
            section = name
            about = inspect.cleandoc(owner.__doc__ or "").split("\n")[0].rstrip(".")
            title = f"`[{name}]`: {about}" if name else "Top level"
            text += f"\n## {title}\n"
            text += "\n| key | value | default | meaning |\n|---|---|---|---|\n"
        default = "none" if values[key] is None else f"`{values[key]}`"
        default = "empty" if values[key] in ("", (), {}) else default
        cells = (
            f"`{key}`",
            expected(hint, TOML).replace("'", "`"),
            default,
            meaning(key),
        )
        text += f"| {' | '.join(cells)} |\n"
    text += ENGINES
    whole = ("server.", "mcp.")
    single = [key for key in config.KEYS if key in GUARDED and not key.startswith(whole)]
    listed = ", ".join(f"`{key}`" for key in single)
    text += f"{FOUND}{listed}, nor anything in `[server]` or `[mcp]`, nor settings of an engine's "
    text += "own.\n"
    text += "\n## Presets\n\n| preset | good for | needs | sets |\n|---|---|---|---|\n"
    for preset in reversed(BEST_FIRST):
        settings = preset.settings.items()
        sets = ", ".join(f"`{key} = {value}`" for key, value in settings)
        cells = f"`{preset.name}`", preset.good_for, preset.needs
        text += f"| {' | '.join(cells)} | {sets or 'nothing: it is the default'} |\n"
    return text


if __name__ == "__main__":
    Path("docs/configuration.md").write_text(page(), encoding="utf-8")
