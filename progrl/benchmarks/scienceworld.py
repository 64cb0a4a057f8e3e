"""ScienceWorld: experiments of a primary school, in text (package `scienceworld`, in Java).

One JVM serves all episodes, each in a simulator of its own, and ends with this process however that
ends. The package lists all valid commands after every step, which takes most of its time; here the
simulator is asked for its answer and score alone.
"""

import atexit
import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from progrl.benchmarks.base import Game, GoldExpert, Silent, check_call, standing, task, tool
from progrl.dialogue.messages import ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.trajectories import Outcome
from progrl.environments.contracts import StepResult
from progrl.errors import ConfigurationError, EnvironmentFault, MalformedAction
from progrl.seeds import Seed

SECONDS = 120.0
"""Wall time that one call of the JVM may take; the slowest gold path is made in about 10 s."""
OPTIONS = ["-Xmx1500m", "-XX:+UseSerialGC", "-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2"]
"""The last one gives all objects the same hash: else the order in which things are listed, and
acted on, would change from run to run."""
SHORT = 20
"""Most commands of the gold path of a short task."""
SHORT_FAMILIES = (
    "chemistry-mix",
    "chemistry-mix-paint-secondary-color",
    "chemistry-mix-paint-tertiary-color",
    "find-animal",
    "find-living-thing",
    "find-non-living-thing",
    "find-plant",
    "identify-life-stages-2",
    "lifespan-longest-lived",
    "lifespan-longest-lived-then-shortest-lived",
    "lifespan-shortest-lived",
    "power-component",
    "power-component-renewable-vs-nonrenewable-energy",
    "test-conductivity",
    "test-conductivity-of-unknown-substances",
    "use-thermometer",
)
"""Those of the 30 that have gold paths of at most `SHORT` commands."""
LEVELS = (10, 20, 40, 90)
"""A gold path of more commands than this is of the next level."""
_UNKNOWN = "No known action matches that input."


class Jvm:
    """The Java process, and what it is asked."""

    def __init__(self) -> None:
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        gateway: Any = import_module("py4j.java_gateway")
        constants: Any = import_module("scienceworld.constants")
        try:
            port, token, self.process = gateway.launch_gateway(
                classpath=constants.JAR_PATH,
                cwd=constants.BASEPATH,
                javaopts=OPTIONS,
                die_on_exit=True,
                enable_auth=True,
                return_proc=True,
            )
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                f"ScienceWorld: Java did not start ({error}). Install Java 17 or later; "
                "`progrl doctor` says what is found."
            ) from None
        parameters = gateway.GatewayParameters(
            port=port, auth_token=token, auto_field=True, read_timeout=SECONDS
        )
        self._gateway = gateway.JavaGateway(gateway_parameters=parameters)
        protocol: Any = import_module("py4j.protocol")
        self._errors: tuple[type[Exception], ...] = (protocol.Py4JError, OSError)
        self._its_own: type[Exception] = protocol.Py4JJavaError
        self._owner = os.getpid()
        atexit.register(self.close)
        with self.asked("to start"):
            kind = self._gateway.jvm.java.lang.Class.forName("scala.util.Random$")
            self._random = kind.getField("MODULE$").get(None)

    @property
    def ours(self) -> bool:
        """Whether it runs, and this very process has started it."""
        return self._owner == os.getpid() and self.process.poll() is None

    @contextlib.contextmanager
    def asked(self, what: str) -> Iterator[None]:
        """Calls of the JVM, which is ended where it does not answer.

        Raises:
            EnvironmentFault: it failed, or took too long.
        """
        try:
            yield
        except self._errors as error:
            if not isinstance(error, self._its_own):
                self.close()
            first = (str(error).strip().splitlines() or [repr(error)])[0]
            raise EnvironmentFault(f"ScienceWorld: Java, asked {what}, failed: {first}") from None

    def simulator(self) -> Any:
        """A simulator of its own."""
        with self.asked("for a simulator"):
            return self._gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()

    def seed(self, value: int) -> None:
        """Seed the randomness that all simulators share; so it is done before every step."""
        self._random.setSeed(value)

    def close(self) -> None:
        """End it."""
        if self._owner != os.getpid():
            return
        atexit.unregister(self.close)
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(*self._errors):
            self._gateway.close()


jvm = standing(Jvm)


class ScienceEnvironment(Game):
    """One episode in a simulator; a turn earns what it adds to the package's score."""

    reward_bounds = (-2.0, 1.0)

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Load the task's variation."""
        self._jvm = jvm()
        self._simulator = self._jvm.simulator()
        self._seed = Seed(f"benchmark={ScienceWorld.name}").child("task", task.id)
        self._score, self._steps = 0.0, 0
        self._solved = self._ended = False
        with self._jvm.asked("to load a task"):
            self._jvm.seed(self._seed.value)
            self._simulator.load(task.setup["task"], task.setup["variation"], "", False)
        return ScienceWorld.tools

    def _call(self, call: ToolCall) -> StepResult:
        try:
            check_call(call, ScienceWorld.tools)
            command = " ".join(str(call.arguments["command"]).split())
            if command.lower() == "reset task":
                raise MalformedAction("a task cannot begin again")
        except MalformedAction as error:
            return StepResult(f"error: {error}", failed=True)
        with self._jvm.asked(f"to {command[:80]}"):
            self._jvm.seed(self._seed.child("step", self._steps).value)
            said = str(self._simulator.step(command))
            score = float(self._simulator.getScore())
            completed = bool(self._simulator.getCompleted())
        self._steps += 1
        gained, self._score = score - self._score, score
        self._solved = completed and score >= 1
        self._ended = completed or score < 0
        failed = said.startswith(_UNKNOWN)
        reached = ("solved",) * self._solved
        return StepResult(
            said.strip(), gained, reached, float(self._solved), self._ended, failed=failed
        )

    def outcome(self) -> Outcome:
        """Solved at the score of 100, as the package has it; the score is the domain's part."""
        done = float(self._solved)
        score = min(1.0, max(0.0, self._score))
        return Outcome(self._solved, done, ("solved",) * self._solved, True, score)


class ScienceWorld(Silent):
    """The 30 tasks in turn, with the package's variations of each split."""

    name = "scienceworld"
    description = "Do an experiment in a world of text."
    policy = (
        "Do what the task says, by commands: look around, inventory, task, wait, wait1, and with "
        "names of things or places in place of OBJ: open OBJ, close OBJ, go OBJ, look at OBJ, look "
        "in OBJ, pick up OBJ, put down OBJ, move OBJ to OBJ, pour OBJ in OBJ, dunk OBJ in OBJ, mix "
        "OBJ, use OBJ on OBJ, activate OBJ, deactivate OBJ, connect OBJ to OBJ, disconnect OBJ, "
        "read OBJ, eat OBJ, flush OBJ, focus on OBJ. Focus only on what the task asks you to focus "
        "on: anything else ends it. Where a command is ambiguous, answer with the number.\n"
    )
    tools: tuple[ToolSpec, ...] = (
        tool(
            "act",
            "Give a command.",
            command={"type": "string", "description": "as in: move metal pot to stove"},
        ),
    )
    most_commands: int | None = None
    """Of the gold path; None where any are welcome."""

    def families(self) -> Sequence[str]:
        """The names of the tasks, in a fixed order."""
        with jvm().asked("for the tasks"):
            return sorted(jvm().simulator().getTaskNames())

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The tasks in turn, each with its next variation of the split, until all have ended.

        The variations of `train` come in an order that follows from `seed`, without end; those of
        the other splits as the package has them, once.
        """
        simulator, names = jvm().simulator(), self.families()
        while True:
            left = {name: self._variations(simulator, name, split, seed) for name in names}
            while left:
                for name in list(left):
                    made = None
                    while left[name] and made is None:
                        made = self._task(simulator, name, left[name].pop())
                    if made is None:
                        del left[name]
                    else:
                        yield made
            if split != "train":
                return
            seed += 1

    def _variations(self, simulator: Any, name: str, split: Split, seed: int) -> list[int]:
        """Numbers of variations, the first one last."""
        with jvm().asked("for variations"):
            simulator.load(name, 0, "", False)
            match split:
                case "test":
                    return list(simulator.getVariationsTest())[::-1]
                case "validation":
                    return list(simulator.getVariationsDev())[::-1]
            found = list(simulator.getVariationsTrain())
        random = Seed(f"benchmark={self.name}").child("train", seed).child("task", name).random()
        random.shuffle(found)
        return found

    def _task(self, simulator: Any, name: str, variation: int) -> Task | None:
        """The task, where its gold path is short enough."""
        with jvm().asked("for a gold path"):
            # The first gold path of a variation with wires differs from all later ones.
            for _ in range(2 if name == "test-conductivity" else 1):
                jvm().seed(variation)
                simulator.load(name, variation, "", True)
            commands = [str(command) for command in simulator.getGoldActionSequence()]
            if self.most_commands is not None and len(commands) > self.most_commands:
                return None
            about = " ".join(str(simulator.getTaskDescription()).split())
            query = f"{about}\n{str(simulator.freeActionLook()).strip()}"
        gold = [{"call": "act", "arguments": {"command": each}} for each in commands]
        level = 1 + sum(len(commands) > most for most in LEVELS)
        setup = {"task": name, "variation": variation}
        return task(self.name, name, level, query, {"gold": gold}, setup, len(gold))

    def turns(self, task: Task) -> int:
        """Twice what the gold path needs, and 20 to look around."""
        return 2 * task.expert_turns + 20

    def environment(self) -> ScienceEnvironment:
        """A fresh environment."""
        return ScienceEnvironment()

    def expert(self) -> GoldExpert:
        """Gives the commands of the package's gold path."""
        return GoldExpert()


class ScienceWorldShort(ScienceWorld):
    """The variations whose gold path is short enough for the horizons of small agents."""

    name = "scienceworld_short"
    most_commands = SHORT

    def families(self) -> Sequence[str]:
        """Those that have short variations."""
        return SHORT_FAMILIES
