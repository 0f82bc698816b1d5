"""The same model in another form: its weights carried over."""

from models.classifier import SequenceClassifier
from models.rotation_dense import RotationDense


def to_form(model: SequenceClassifier, form: str) -> SequenceClassifier:
    """Returns the TransEvolve model with its attention in another form.

    The forms share their weights. The literal form has one more, the inert
    `key_time_kernel`, which is dropped on the way to another form and fresh, as
    initialised, on the way back.

    Args:
      model: a built classifier with a TransEvolve encoder.
      form: "literal" or "factored".
    """
    return _rebuild(model, form=form)


def fold_rotations(model: SequenceClassifier) -> SequenceClassifier:
    """Returns the model for inference with every rotation layer folded to a kernel.

    Args:
      model: a built classifier with a randomFF TransEvolve encoder.
    """
    return _rebuild(model, feed_forward="dense")


def _rebuild(model, **changes):
    config = model.encoder.get_config()
    encoder = type(model.encoder).from_config({**config, **changes})
    twin = SequenceClassifier(
        model.vocabulary_size,
        model.num_classes,
        model.hidden_dim,
        encoder,
        name=model.name,
    )
    twin.build((None, None))
    values = _values(model)
    for path, weight in _weights(twin).items():
        if path in values:
            weight.assign(values[path])
    return twin


def _values(model):
    """Weights by path, with rotation layers as the dense kernels that they equal."""
    values = _weights(model)
    for layer in model._flatten_layers():
        if isinstance(layer, RotationDense):
            path = _relative(layer.bias.path).removesuffix("bias")
            values[path + "kernel"] = layer.kernel()
    return values


def _weights(model):
    return {_relative(weight.path): weight for weight in model.weights}


def _relative(path):
    """The path without the model's own name, which Keras makes unique."""
    return path.split("/", 1)[1]
