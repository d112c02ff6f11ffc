"""From f-strings to a graph: markers become templates, hidden parameters and inputs carry what they refer to.

Three passes over a draft, innermost DAG first:

1. *fields*: each marker of a command, environment value, condition or loop argument becomes ``{{own name}}``; what
   belongs to another component gets a hidden parameter or input;
2. *borders*: each reference becomes ``{{sibling.name}}`` or ``{{PF_PARENT.name}}``, and every DAG it crosses on its way
   in hands it on under a hidden name of its own;
3. *outputs*: each DAG that an artifact leaves on its way out hands it on likewise.

Parameters never flow out of a DAG.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paddleflow.pipeline import names
from paddleflow.pipeline.drafts import Draft, Literal, LoopItemPlaceholder, Template, Text
from paddleflow.pipeline.failures import dsl_error
from paddleflow.pipeline.names import hidden_name, is_inside, template
from paddleflow.pipeline.values import ArtifactPlaceholder, ParameterPlaceholder

PARENT = "PF_PARENT"
_PARENT_ITEM = Template(template(names.LOOP_ITEM, PARENT))


def infer(root: Draft, env: Mapping[str, str]) -> None:
    """Settle every reference inside this DAG; ``env`` is that of the pipeline."""
    _Inference(root, env).settle(root)
    for dag in root.walk():
        _settle_outputs(dag)


def infer_alone(step: Draft, env: Mapping[str, str]) -> None:
    """Settle a step that stands outside the graph: what it still refers to afterwards is foreign."""
    _Inference(step, env).read_fields(step)


class _Inference:
    def __init__(self, root: Draft, env: Mapping[str, str]) -> None:
        self._env = env
        self._drafts = {each.full_name: each for each in root.walk()}

    def settle(self, dag: Draft) -> None:
        self.read_fields(dag)
        for child in dag.children.values():
            if child.is_dag:
                self.settle(child)
            else:
                self.read_fields(child)
        for child in dag.children.values():
            self._settle_parameters(dag, child)
            self._settle_inputs(dag, child)
            self._settle_waits(dag, child)

    # 1. fields

    def read_fields(self, draft: Draft) -> None:
        # The order of the fields decides the order of the hidden names, which is part of what is emitted.
        if not draft.is_dag:
            draft.command = self._own_text(draft, draft.command, "command")
            draft.env |= {key: value for key, value in self._env.items() if key not in draft.env}
            draft.env = {key: self._own_text(draft, value, "env") for key, value in draft.env.items()}
        self._read_loop(draft)
        if draft.condition is not None:
            draft.condition = self._own_text(draft, draft.condition, "condition")
        for name, given in draft.parameters.items():
            if isinstance(given, LoopItemPlaceholder):
                self._check_item_of_parent(draft, given.component_full_name)
                draft.parameters[name] = _PARENT_ITEM

    def _own_text(self, draft: Draft, text: str, field: str) -> str:
        return names.MARKER.sub(lambda found: template(self._own_name(draft, found, field)), text)

    def _read_loop(self, draft: Draft) -> None:
        if not isinstance(draft.loop, str):
            return
        text = draft.loop.strip()
        found = names.MARKER.fullmatch(text)
        if found:
            if found["kind"] == names.LOOP and found["owner"] == draft.full_name:
                raise dsl_error(f"{draft.title} cannot loop over its own loop item")
            draft.loop = template(self._own_name(draft, found, "loop"))
            return
        own = names.OWN_TEMPLATE.fullmatch(text)
        if own and own["name"] not in draft.parameters and own["name"] not in draft.inputs:
            raise dsl_error(f"loop_argument {text} is not a parameter or input artifact of {draft.title}")

    def _own_name(self, draft: Draft, found: re.Match[str], field: str) -> str:
        """What the component itself calls the thing a marker points to; a hidden name is given where it has none."""
        kind, owner, name = found["kind"], found["owner"], found["name"]
        own = owner == draft.full_name
        if kind == names.LOOP:
            if own:
                return names.LOOP_ITEM
            self._check_item_of_parent(draft, owner)
            hidden = hidden_name(field, "param", owner, name)
            draft.parameters[hidden] = _PARENT_ITEM
            return hidden
        if kind == names.PARAMETER:
            if own:
                return self._own_parameter(draft, name, field)
            hidden = hidden_name(field, "param", owner, name)
            draft.parameters[hidden] = ParameterPlaceholder(name, owner)
            return hidden
        if field == "env":
            raise dsl_error(f"env of {draft.title} refers to artifact[{name}]: only parameters can be used there")
        if own:
            return self._own_artifact(draft, name, field)
        hidden = hidden_name(field, "art", owner, name)
        draft.inputs[hidden] = ArtifactPlaceholder(name, owner)
        return hidden

    def _own_parameter(self, draft: Draft, name: str, field: str) -> str:
        if name not in draft.parameters:
            raise dsl_error(f"{field} of {draft.title} refers to parameter[{name}], which it does not have")
        return name

    def _own_artifact(self, draft: Draft, name: str, field: str) -> str:
        if name in draft.inputs or (field == "command" and name in draft.outputs):
            return name
        if name in draft.outputs:
            raise dsl_error(f"{field} of {draft.title} refers to its own output artifact[{name}], not yet made then")
        raise dsl_error(f"{field} of {draft.title} refers to artifact[{name}], which it does not have")

    def _check_item_of_parent(self, draft: Draft, owner: str) -> None:
        parent = draft.parent
        if parent is None or parent.full_name != owner:
            raise dsl_error(
                f"{draft.title} uses the loop item of [{owner}]: "
                "component can only reference itself or its parent component's loop item"
            )
        if parent.loop is None:
            raise dsl_error(f"{draft.title} uses the loop item of {parent.title}, which has no loop_argument")

    # 2. borders

    def _settle_parameters(self, dag: Draft, child: Draft) -> None:
        for name, given in child.parameters.items():
            if isinstance(given, ParameterPlaceholder):
                child.parameters[name] = Template(self._parameter(dag, child, given))
            elif isinstance(given, Text):
                child.parameters[name] = Literal(self._text(dag, child, given.text))

    def _text(self, dag: Draft, child: Draft, text: str) -> str:
        """A parameter whose text refers to other components; all its templates are read in the parent's scope."""

        def spelled(found: re.Match[str]) -> str:
            kind, owner, name = found["kind"], found["owner"], found["name"]
            if owner == child.full_name or kind == names.ARTIFACT:
                raise dsl_error(
                    f"a parameter of {child.title} refers to [{owner}.{name}]: the text of a parameter can only use "
                    "parameters and loop items of other components"
                )
            if kind == names.LOOP:
                self._check_item_of_parent(child, owner)
                return _PARENT_ITEM.text
            return self._parameter(dag, child, ParameterPlaceholder(name, owner))

        return names.MARKER.sub(spelled, text)

    def _parameter(self, dag: Draft, child: Draft, wanted: ParameterPlaceholder) -> str:
        """What a child writes for a parameter of another component."""
        owner, name = wanted.component_full_name, wanted.name
        producer = self._producer(child, owner, name)
        around = list(child.around())
        if producer not in around and producer.parent not in around:
            raise dsl_error(
                f"{child.title} refers to parameter[{name}] of {producer.title}: only support reference Parameter "
                "from sibling component, ancestor component, and ancestor sibling component"
            )
        if name not in producer.parameters:
            raise dsl_error(f"{child.title} refers to parameter[{name}] of {producer.title}, which it does not have")
        if producer is dag:
            return template(name, PARENT)
        if producer.parent is dag:
            child.deps.add(producer.name)
            return template(name, producer.name)
        hidden = hidden_name("dsl", "param", owner, name)
        dag.parameters[hidden] = wanted
        return template(hidden, PARENT)

    def _settle_inputs(self, dag: Draft, child: Draft) -> None:
        for name, given in child.inputs.items():
            if isinstance(given, ArtifactPlaceholder):
                child.inputs[name] = Template(self._artifact(dag, child, name, given))

    def _artifact(self, dag: Draft, child: Draft, input_name: str, wanted: ArtifactPlaceholder) -> str:
        """What a child writes for an artifact of another component."""
        owner, name = wanted.component_full_name, wanted.name
        producer = self._producer(child, owner, name)
        if producer is dag or is_inside(child.full_name, owner):
            if name not in producer.inputs:
                raise dsl_error(f"{child.title} refers to input artifact[{name}] of {producer.title}: it has none")
        elif name not in producer.outputs:
            raise dsl_error(f"{child.title} refers to output artifact[{name}] of {producer.title}: it has none")
        if is_inside(owner, child.full_name) or producer is child:
            raise dsl_error(f"{child.title} takes artifact[{name}] from inside itself")
        if producer is dag:
            return template(name, PARENT)
        if producer.parent is dag:
            child.deps.add(producer.name)
            return template(name, producer.name)
        if is_inside(owner, dag.full_name) or not dag.full_name:
            sibling = _child_around(dag, owner)
            child.deps.add(sibling.name)
            return template(_hand_out(sibling, wanted, input_name), sibling.name)
        hidden = hidden_name("dsl", "art", owner, name)
        dag.inputs[hidden] = wanted
        return template(hidden, PARENT)

    def _settle_waits(self, dag: Draft, child: Draft) -> None:
        for upstream in child.waits_for:
            if upstream not in self._drafts:
                raise dsl_error(f"{child.title} should run after [{upstream}], which is not in this pipeline")
            if is_inside(upstream, child.full_name) or is_inside(child.full_name, upstream):
                raise dsl_error(f"{child.title} cannot run after [{upstream}]: one of them is inside the other")
            if is_inside(upstream, dag.full_name) or not dag.full_name:
                child.deps.add(_child_around(dag, upstream).name)
            else:
                dag.waits_for.append(upstream)

    def _producer(self, draft: Draft, owner: str, name: str) -> Draft:
        producer = self._drafts.get(owner)
        if producer is None:
            raise dsl_error(
                f"{draft.title} refers to [{name}] of component[{owner}], which is not in this pipeline: it belongs "
                "to another one, or the text was made before the component was put into its DAG"
            )
        return producer


# 3. outputs


def _settle_outputs(dag: Draft) -> None:
    """The root is settled before what is inside it, so that an output is handed on until it meets its producer."""
    if not dag.is_dag:
        return
    for name, given in dag.outputs.items():
        if not isinstance(given, ArtifactPlaceholder):
            continue
        owner = given.component_full_name
        if not is_inside(owner, dag.full_name):
            raise dsl_error(f"output artifact[{name}] of {dag.title} should come from inside it, not from [{owner}]")
        child = _child_around(dag, owner)
        if child.full_name == owner:
            if given.name not in child.outputs:
                raise dsl_error(f"{dag.title} hands out artifact[{given.name}] of {child.title}: it has none")
            dag.outputs[name] = Template(template(given.name, child.name))
        else:
            dag.outputs[name] = Template(template(_hand_out(child, given, given.name), child.name))


def _hand_out(dag: Draft, wanted: ArtifactPlaceholder, consumer_name: str) -> str:
    """The name under which a DAG gives out an artifact of something inside it.

    It is made from the name its consumer gives it; two artifacts of one producer that are given the same name by two
    consumers get another.
    """
    owner = wanted.component_full_name
    for naming in (consumer_name, wanted.name, f"{wanted.name}.{consumer_name}"):
        hidden = hidden_name("dsl", "art", owner, naming)
        if dag.outputs.setdefault(hidden, wanted) == wanted:
            return hidden
    raise AssertionError(f"no free name for {owner}.{wanted.name}")


def _child_around(dag: Draft, full_name: str) -> Draft:
    """The child that is, or holds, the component of that name."""
    inner = full_name[len(dag.full_name) + 1 :] if dag.full_name else full_name
    child = dag.children.get(inner.partition(".")[0])
    if child is None:
        raise dsl_error(f"there is no component[{full_name}] in {dag.title}")
    return child
