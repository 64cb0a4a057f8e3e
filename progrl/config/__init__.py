"""The configuration: `params.yaml` as typed models, profiles laid over it, overrides on top."""

from progrl.config.load import find_profile, load_config, resolved
from progrl.config.models import Config

__all__ = ["Config", "find_profile", "load_config", "resolved"]
