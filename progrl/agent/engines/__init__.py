"""Engines that sample from a model: token ids in, token ids out."""
