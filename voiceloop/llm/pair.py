"""The models of the built-in engine: which target and draft a configuration names, and how they are
loaded.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from voiceloop.bundled import bundled
from voiceloop.catalog.names import find
from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.draft.trained import LoadedHead, is_head, load_head, shipped_head
from voiceloop.llm.gguf.file import ASSISTANT, GgufModel, gguf_in
from voiceloop.llm.model.loading import LoadedModel, family, load_model
from voiceloop.placement import torch_device
from voiceloop.settings.config import LlmConfig

STARTER = {"target": "models/starter/llm-target", "draft": "models/starter/llm-draft"}
"""The folders of the bundled target and draft."""
SHIPPED = "shipped"
"""The name of the draft that is shipped with voiceloop for the target's family of models."""


def with_head(target: LoadedModel, config: LlmConfig) -> GgufModel | None:
    """Return the target's GGUF file if it has an MTP layer, and no other draft is configured."""
    file = target.model
    if isinstance(file, GgufModel) and file.has_head and draft_of(config) == SHIPPED:
        return file
    return None


def draft_of(config: LlmConfig) -> str:
    """Return the name of the draft in `config`: `none`, `ngram`, `starter`, `SHIPPED`, a model or a
    trained draft. With `SHIPPED`, llama.cpp uses the MTP layer in the target's file, if there is
    one. N-grams are used where no draft is shipped for the target's family either."""
    if config.num_speculative_tokens == 0:
        return "none"
    if config.draft == "auto":
        return "starter" if config.target == "starter" else SHIPPED
    return config.draft


def load_pair(
    config: LlmConfig, *, whole: bool = False
) -> tuple[LoadedModel, LoadedModel | LoadedHead | None]:
    """Load the target that `config` names, and the draft if it has weights.

    With `whole`, models other than trained drafts are always loaded as models of transformers.
    Raises ModelNotFound, ModelCorrupt, OutOfMemory, and EngineError for a device that does not
    exist.
    """
    device, dtype = placement(config)
    if config.target != "starter" and gguf_in(find(config.target, "llm")):
        _check_wishes(config)
        device = torch.device("cpu")  # where llama.cpp puts the logits, wherever it computes

    def load(name: str, role: str) -> LoadedModel:
        drafts = role == "draft"
        tokenizer = config.draft_tokenizer if drafts else ""
        if name != "starter":
            return load_model(
                name, device, dtype, whole=whole, tokenizer=tokenizer, assistant=drafts
            )
        found = load_model(str(bundled(STARTER[role])), device, dtype, whole=whole)
        return replace(found, name=f"starter {role}")

    draft = draft_of(config)
    folder = None if draft in ("none", "ngram", "starter", SHIPPED) else find(draft, "llm")
    trained = folder is not None and is_head(folder)
    if config.draft_tokenizer and (folder is None or trained):
        raise EngineError(
            f"llm.draft_tokenizer is set, and the draft '{draft}' takes no other tokenizer",
            "leave it out, or name a model with llm.draft",
        )
    target = load(config.target, "target")
    if draft in ("none", "ngram"):
        return target, None
    if draft == SHIPPED:
        return target, shipped_head(family(target), device)
    if folder is not None and trained:
        return target, load_head(draft, folder, device)
    return target, load(draft, "draft")


def _check_wishes(config: LlmConfig) -> None:
    """Raise EngineError if `config` asks of a GGUF file what only torch can do."""
    wishes = {
        "llm.dtype": config.dtype != "auto",
        "llm.best_of": config.best_of > 1,
        "llm.branches": config.branches > 0,
    }
    if asked := [wish for wish, is_asked in wishes.items() if is_asked]:
        raise EngineError(
            f"'{config.target}' is a GGUF file, for which {asked[0]} does not exist",
            "leave it out, or name the model's folder or repository of safetensors",
        )


def placement(config: LlmConfig) -> tuple[torch.device, torch.dtype | None]:
    """Return the device of the models and the type of their weights. The type is None if the
    checkpoint decides it.

    Raises EngineError for a device that does not exist.
    """
    device = torch_device("llm.device", config.device)
    auto = torch.float32 if device.type == "cpu" else None
    return device, auto if config.dtype == "auto" else getattr(torch, config.dtype)


def vocabulary(loaded: LoadedModel) -> int:
    """Return the number of tokens in the model's vocabulary. The embedding often has more rows than
    that, for padding. Raises ModelCorrupt if it has fewer."""
    tokens = max(loaded.tokenizer.get_vocab().values()) + 1
    if tokens > loaded.rows:
        raise ModelCorrupt(
            f"the tokenizer of '{loaded.name}' has {tokens} tokens, its model only {loaded.rows}",
            "use the tokenizer that the model was trained with",
        )
    return tokens


def assisting(draft: LoadedModel | LoadedHead | None, target: LoadedModel) -> GgufModel | None:
    """Return the model of `draft` if it is an assistant of Gemma 4. Raises EngineError if it is one
    of another model than `target`."""
    found, model = draft.model if isinstance(draft, LoadedModel) else None, target.model
    if not isinstance(found, GgufModel) or found.kind != ASSISTANT:
        return None
    of = (model.kind, model.rows, model.width) if isinstance(model, GgufModel) else ()
    if of != ("gemma4", found.rows, found.number("embedding_length_out")):
        raise EngineError(
            f"'{found.file.name}' drafts for another model than '{target.name}'",
            "name the GGUF file of that Gemma 4 with llm.target, or set llm.draft to auto",
        )
    return found
