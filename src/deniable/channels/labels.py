from deniable.labels import Label, as_label, as_labels, index_of, label_key, label_spec, load_label, text

__all__ = ["Label", "as_label", "as_labels", "index_of", "label_key", "label_spec", "load_label", "text"]
