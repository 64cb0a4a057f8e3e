"""A folder laid out as a checkout of tau-bench, with a shop of two orders and three tasks.

Hand-made: the names and the way of the verdict are the benchmark's, the contents are not.
"""

from pathlib import Path

FILES = {
    "__init__.py": "from tau_bench.envs.base import Env as Env\n",
    "types.py": """
from typing import Any
from pydantic import BaseModel

RESPOND_ACTION_NAME = "respond"

class Action(BaseModel):
    name: str
    kwargs: dict[str, Any]

class Task(BaseModel):
    user_id: str
    actions: list[Action]
    instruction: str
    outputs: list[str]

class RewardResult(BaseModel):
    reward: float

class EnvResponse(BaseModel):
    observation: str
    reward: float
    done: bool
""",
    "envs/__init__.py": "",
    "envs/user.py": """
from litellm import completion

class HumanUser:
    def reset(self, instruction=None):
        return input(instruction)

def load_user(user_strategy, model):
    assert user_strategy == "human"
    return HumanUser()
""",
    "envs/base.py": """
import json
from tau_bench.envs.user import load_user
from tau_bench.types import RESPOND_ACTION_NAME, EnvResponse, RewardResult

class Env:
    def __init__(self, load, tools, tasks, wiki, user_strategy, user_model, task_index):
        self.load, self.data, self.wiki, self.tasks = load, load(), wiki, tasks
        self.tools_map = {tool.get_info()["function"]["name"]: tool for tool in tools}
        self.tools_info = [tool.get_info() for tool in tools]
        self.terminate_tools = []
        self.user = load_user(user_strategy, user_model)
        self.task, self.actions = tasks[task_index], []

    def reset(self, task_index):
        self.data, self.task, self.actions = self.load(), self.tasks[task_index], []
        return self.user.reset(instruction=self.task.instruction)

    def step(self, action):
        self.actions.append(action)
        done, reward = False, 0.0
        if action.name == RESPOND_ACTION_NAME:
            observation = self.user.step(action.kwargs["content"])
        elif action.name in self.tools_map:
            try:
                observation = self.tools_map[action.name].invoke(data=self.data, **action.kwargs)
            except Exception as error:
                observation = f"Error: {error}"
            done = action.name in self.terminate_tools
        else:
            observation = f"Unknown action {action.name}"
        if done:
            reward = self.calculate_reward().reward
        return EnvResponse(observation=observation, reward=reward, done=done)

    def calculate_reward(self):
        said = [a.kwargs["content"] for a in self.actions if a.name == RESPOND_ACTION_NAME]
        reached = json.dumps(self.data, sort_keys=True)
        self.data = self.load()
        for action in self.task.actions:
            if action.name not in self.terminate_tools:
                self.step(action)
        right = reached == json.dumps(self.data, sort_keys=True)
        right &= all(any(output in text for text in said) for output in self.task.outputs)
        return RewardResult(reward=float(right))
""",
    "envs/retail/__init__.py": "",
    "envs/retail/env.py": """
from tau_bench.envs.base import Env
from tau_bench.types import Action, Task

ORDERS = {"#W1": "pending", "#W2": "delivered"}

def info(name, *keys):
    properties = {key: {"type": "string"} for key in keys}
    parameters = {"type": "object", "properties": properties, "required": list(keys)}
    function = {"name": name, "description": name, "parameters": parameters}
    return {"type": "function", "function": function}

class Look:
    @staticmethod
    def invoke(data, order_id):
        return data["orders"][order_id]

    @staticmethod
    def get_info():
        return info("get_order", "order_id")

class Cancel:
    @staticmethod
    def invoke(data, order_id):
        if data["orders"][order_id] != "pending":
            return "Error: order is not pending"
        data["orders"][order_id] = "cancelled"
        return "cancelled"

    @staticmethod
    def get_info():
        return info("cancel_order", "order_id")

class Calculate:
    @staticmethod
    def invoke(data, expression):
        return str(eval(expression))

    @staticmethod
    def get_info():
        return info("calculate", "expression")

class Transfer:
    @staticmethod
    def invoke(data):
        return "transferred"

    @staticmethod
    def get_info():
        return info("transfer_to_human_agents")

def call(name, **kwargs):
    return Action(name=name, kwargs=kwargs)

TASKS = [
    Task(
        user_id="a",
        actions=[call("get_order", order_id="#W1"), call("cancel_order", order_id="#W1")],
        instruction="You are Ann Lee. You want to cancel your order #W1. Your zip is 12345.",
        outputs=[],
    ),
    Task(
        user_id="a",
        actions=[call("cancel_order", order_id="#W2"), call("transfer_to_human_agents")],
        instruction="You are Ann Lee. You wish to cancel #W2, and to know what state it is in.",
        outputs=["delivered"],
    ),
    Task(
        user_id="a",
        actions=[call("get_order", order_id="#W2")],
        instruction="You are Ann Lee. You want to know nothing.",
        outputs=[],
    ),
]

class MockRetailDomainEnv(Env):
    def __init__(self, user_strategy, user_model, task_split, task_index=None):
        assert task_split == "test"
        load = lambda: {"orders": dict(ORDERS)}
        tools = [Look, Cancel, Calculate, Transfer]
        super().__init__(load, tools, TASKS, "Be good.", user_strategy, user_model, task_index)
        self.terminate_tools = ["transfer_to_human_agents"]
""",
}


def write(folder: Path) -> Path:
    """Write the files under `folder`, which is then the checkout."""
    for name, text in FILES.items():
        path = folder / "tau_bench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
