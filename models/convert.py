"""The same model in another form: its weights carried over."""

import keras

from models.rotation_dense import RotationDense


def to_form(model: keras.Model, form: str) -> keras.Model:
    """Returns the TransEvolve model with its attention in another form.

    The forms share their weights. The literal form has one more, the inert
    `key_time_kernel`, which is dropped on the way to another form and fresh, as
    initialised, on the way back.

    Args:
      model: a built `SequenceClassifier` or `EncoderDecoder` of TransEvolve.
      form: "literal" or "factored".
    """
    return _rebuild(model, form=form)


def fold_rotations(model: keras.Model) -> keras.Model:
    """Returns the model for inference with every rotation layer folded to a kernel.

    Args:
      model: a built `SequenceClassifier` or `EncoderDecoder`; returned as it is if it
        has no rotation layers.
    """
    if not any(isinstance(layer, RotationDense) for layer in model._flatten_layers()):
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
    """Gives the same model in another form, as made here, its original's weights."""
    values = _values(model)
    for path, weight in _weights(twin).items():
        if path in values:
            weight.assign(values[path])


def _values(model):
    """Weights by path, with rotation layers as the dense kernels that they equal."""
    values = _weights(model)
    for layer in model._flatten_layers():
        if isinstance(layer, RotationDense):
            path = _relative(layer.bias, model).removesuffix("bias")
            values[path + "kernel"] = layer.kernel()
    return values


def _weights(model):
    return {_relative(weight, model): weight for weight in model.weights}


def _relative(weight, model):
    """The path below the model; a layer made from a config has no model in it."""
    return weight.path.removeprefix(f"{model.name}/")
