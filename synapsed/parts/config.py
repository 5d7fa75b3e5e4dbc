"""The model of a configuration in which parts have their sections and keys."""

from collections.abc import Sequence
from typing import Any

from pydantic import create_model

from synapsed.config.config import AgentConfig, Config
from synapsed.kernel import Face


def config_with(faces: Sequence[Face]) -> type[Config]:
    """Returns the model of a configuration in which each part has its sections and its keys of agents."""
    sections: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for face in faces:
        sections |= {name: (one.kind, one.default) for name, one in face.sections.items()}
        settings |= {name: (one.kind, one.default) for name, one in face.agent_settings.items()}
    for name in dict.fromkeys(name for face in faces for name in face.extends):
        bases = tuple(face.extends[name] for face in faces if name in face.extends)
        extended = create_model(bases[0].__name__, __base__=bases)
        sections[name] = (extended, extended())
    agent = create_model("AgentConfig", __base__=AgentConfig, **settings)
    made = create_model("Config", __base__=Config, agents=(dict[str, agent], {}), **sections)  # type: ignore[valid-type]
    made.part_sections = {name: one for face in faces for name, one in face.sections.items()}
    made.part_checks = [face.check for face in faces if face.check is not None]
    return made


def added_keys(face: Face) -> list[str]:
    """Returns the keys that a part adds to sections of the kernel."""
    kernels = {name: type(getattr(Config(), name)).model_fields for name in face.extends}
    return [key for name, model in face.extends.items() for key in model.model_fields if key not in kernels[name]]
