"""One Prefect flow a module; `python -m flows.NAME` runs it."""

from tasks.environment import apply

# Prefect reads its settings when it is imported, so they are made first.
apply()
