"""Converts a model to another form and carries its weights over."""

import keras

from models.attention.attention import Attention
from models.layers.rotation_dense import RotationDense


def with_attention(model: keras.Model, name: str, **hyperparameters) -> keras.Model:
    """Returns the model with another attention mechanism and the same weights.

    Weights that a mechanism calls inert are dropped, or fresh as initialised.

    Args:
      model: a built `models.token_model.TokenModel`.
      name: of a mechanism that serves its architecture.
      **hyperparameters: of the mechanism.

    Raises:
      ValueError: if the mechanisms do not have the same weights.
    """
    return _rebuild(model, attention={"name": name, **hyperparameters})


def fold_rotations(model: keras.Model) -> keras.Model:
    """Returns the model for inference with every rotation layer folded to a kernel.

    Args:
      model: a built `models.token_model.TokenModel`; returned as it is if it has no
        rotation layers.
    """
    if not _has_rotations(model):
        return model
    return _rebuild(model, feed_forward="dense")


def _rebuild(model, **changes):
    config = model.get_config()
    for part in ("encoder", "decoder"):
        if part in config:
            layer = getattr(model, part)
            layer = type(layer).from_config({**layer.get_config(), **changes})
            config[part] = keras.saving.serialize_keras_object(layer)
    twin = type(model).from_config(config)
    twin.build((None, None))
    carry_weights(model, twin)
    return twin


def carry_weights(model: keras.Model, twin: keras.Model) -> None:
    """Gives the same model in another form, as made here, its original's weights.

    Raises:
      ValueError: naming a weight of either that the other has no partner for.
    """
    weights = _weights(twin)
    values = _weights(model) if _has_rotations(twin) else _folded_weights(model)
    for path in sorted(values.keys() ^ weights.keys()):
        if path not in _inert(model) | _inert(twin):
            owner = "the original" if path in values else "the new form"
            raise ValueError(f"{path}: only {owner} has this weight")
    for path in sorted(values.keys() & weights.keys()):
        if values[path].shape != weights[path].shape:
            raise ValueError(
                f"{path}: expected the shape {weights[path].shape}, found "
                f"{values[path].shape}"
            )
        weights[path].assign(values[path])


def _has_rotations(model):
    return any(isinstance(layer, RotationDense) for layer in model._flatten_layers())


def _folded_weights(model):
    """Weights by path, with rotation layers as the dense kernels that they equal."""
    values = _weights(model)
    for layer in model._flatten_layers():
        if isinstance(layer, RotationDense):
            path = _relative(layer.bias, model).removesuffix("bias")
            values[path + "kernel"] = layer.kernel()
            del values[path + "singular_values"]
    return values


def _inert(model):
    return {
        _relative(weight, model)
        for layer in model._flatten_layers()
        if isinstance(layer, Attention)
        for weight in layer.weights
        if weight.name in layer.all_inert_weights
    }


def _weights(model):
    return {_relative(weight, model): weight for weight in model.weights}


def _relative(weight, model):
    """The path below the model; a layer made from a config has no model in it."""
    return weight.path.removeprefix(f"{model.name}/")
