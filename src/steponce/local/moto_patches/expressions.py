"""
DynamoDB's expressions, understood once a text instead of once a call.

moto reads the text of an expression anew at each call, some of them twice, and walks through all of an update
ten times. What a text means does not change, so that is remembered here; the values and the item, which do,
are put in afterwards, on one way through the update's actions. Each question is still answered by moto's own
code: what it refuses is refused.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

from moto.dynamodb.comparisons import AttributeValue, ConditionExpressionParser, OpDefault
from moto.dynamodb.exceptions import AttributeDoesNotExist
from moto.dynamodb.models.dynamo_type import LimitedSizeDict
from moto.dynamodb.parsing import ast_nodes as nodes
from moto.dynamodb.parsing.expressions import UpdateExpressionParser
from moto.dynamodb.parsing.validators import (
    ActionCountValidator,
    EmptyStringKeyValueValidator,
    ExecuteOperations,
    ExpressionAttributeResolvingProcessor,
    ExpressionAttributeValueProcessor,
    OverlappingPathsValidator,
    TypeMismatchValidator,
    UpdateExpressionFunctionEvaluator,
    UpdateExpressionValidator,
    UpdateHashRangeKeyValidator,
)

_TEXTS = 4096  # that are remembered; an application has a few dozen
_ACTIONS = (
    nodes.UpdateExpressionSetAction,
    nodes.UpdateExpressionRemoveAction,
    nodes.UpdateExpressionAddAction,
    nodes.UpdateExpressionDeleteAction,
)


def install() -> None:
    """Put this module's patches in place; a second time changes nothing."""
    if ConditionExpressionParser.parse is not _parse:
        # Their own way through the text is the one before it is replaced.
        _Tree.parse = ConditionExpressionParser.parse
        _Tree._make_operand = ConditionExpressionParser._make_operand
        ConditionExpressionParser.parse = _parse
        ConditionExpressionParser._make_operand = _operand
        UpdateExpressionParser.make = functools.lru_cache(_TEXTS)(UpdateExpressionParser.make)
        UpdateExpressionValidator.validate = _validate
        nodes.Node.find_clauses = _remembering(nodes.Node.find_clauses)
        nodes.Node.__deepcopy__ = lambda node, _memo: node  # nothing changes one any more
        LimitedSizeDict.__deepcopy__ = _copy


class _Tree(ConditionExpressionParser):
    """Reads a condition into moto's tree of its words, without the values."""

    def _lookup_expression_attribute_value(self, name: str) -> str:
        return name

    def _make_op_condition(self, node: Any) -> Any:
        return node


@functools.lru_cache(_TEXTS)
def _read(text: str, names: tuple[tuple[str, str], ...]) -> tuple[Any, Sequence[str], Sequence[str]]:
    """The tree of a condition, and the names and values that it uses."""
    reader = _Tree(text, dict(names), None)
    return reader.parse(), reader.expr_attr_names_found, reader.expr_attr_values_found


def _parse(asking: Any) -> Any:
    """As `ConditionExpressionParser.parse`."""
    if not asking.condition_expression:
        return OpDefault(None, None)
    names = tuple((asking.expression_attribute_names or {}).items())
    tree, names_found, values_found = _read(asking.condition_expression, names)
    asking.expr_attr_names_found.extend(names_found)
    asking.expr_attr_values_found.extend(values_found)
    return asking._make_op_condition(tree)


def _operand(asking: Any, node: Any) -> Any:
    """As moto's own, with the value that this call gives."""
    if node.kind == asking.Kind.EXPRESSION_ATTRIBUTE_VALUE:
        return AttributeValue(asking.expression_attribute_values[node.text])
    return _Tree._make_operand(asking, node)


def _validate(validator: Any) -> Any:
    """As `UpdateExpressionValidator.validate`: a new expression, whose values are those to write."""
    root, table = validator.node_to_validate, validator.table
    ActionCountValidator().verify_action_counts(root)
    OverlappingPathsValidator(validator.expression_attribute_names).check_for_overlapping_paths(root)
    settled = _Settled(validator)
    actions = [settled.action(action) for action in root.find_clauses(_ACTIONS)]
    types, texts = TypeMismatchValidator(table.attr), EmptyStringKeyValueValidator(table.attribute_keys)
    for action in actions:
        if type(action) is nodes.UpdateExpressionSetAction:
            types.check_for_type_mismatch(action)
            texts.check_for_empty_string_key_value(action)
    return nodes.UpdateExpression(actions)


class _Settled:
    """What an update writes in this call, in the place of what its expression says."""

    def __init__(self, validator: Any) -> None:
        names = validator.expression_attribute_names
        self._keys = UpdateHashRangeKeyValidator(validator.table.table_key_attrs, names or {})
        self._values = ExpressionAttributeValueProcessor(validator.expression_attribute_values)
        self._paths = ExpressionAttributeResolvingProcessor(names, validator.item)
        self._of_kind = {
            nodes.ExpressionAttributeValue: self._values.replace_expression_attribute_value_with_value,
            nodes.UpdateExpressionPath: lambda path: self._path(path, is_value=True),
            nodes.UpdateExpressionFunction: self._function,
            nodes.UpdateExpressionValue: self._operation,
        }

    def action(self, action: Any) -> Any:
        """The same action on the same path. Its value, if it has one, is what will be written."""
        path, *values = action.children
        return type(action)([self._path(path, is_value=False), *map(self._existing, values)])

    def _path(self, path: Any, *, is_value: bool) -> Any:
        self._keys.check_for_hash_or_range_key(path)
        self._paths.resolving = is_value
        found = self._paths.process_expression_path_node(path)
        return _of_its_own(found) if type(found) is nodes.DDBTypedValue else found

    def _existing(self, node: Any) -> Any:
        value = self._value(node)
        if type(value) is nodes.NoneExistingPath:
            raise AttributeDoesNotExist
        return value

    def _value(self, node: Any) -> Any:
        settle = self._of_kind.get(type(node))
        return settle(node) if settle else node

    def _function(self, node: Any) -> Any:
        name, *arguments = node.children
        call = nodes.UpdateExpressionFunction([name, *map(self._value, arguments)])
        return UpdateExpressionFunctionEvaluator().process_function(call)

    def _operation(self, node: Any) -> Any:
        parts = nodes.UpdateExpressionValue([self._existing(part) for part in node.children])
        return ExecuteOperations().process_update_expression_value(parts)


def _of_its_own(found: Any) -> Any:
    """A copy of a list or a map of the item. In moto it would be in two places, and change in both."""
    value = found.get_value()
    return nodes.DDBTypedValue(copy.deepcopy(value)) if value.is_list() or value.is_map() else found


def _remembering(find: Callable[[Any, Sequence[type]], list[Any]]) -> Any:
    """No expression changes, so what is in it does not either."""

    @functools.wraps(find)
    def find_clauses(node: Any, kinds: Sequence[type]) -> list[Any]:
        known: dict[tuple[type, ...], list[Any]] = vars(node).setdefault("steponce_clauses", {})
        asked = tuple(kinds)
        if asked not in known:
            known[asked] = find(node, kinds)
        return list(known[asked])

    return find_clauses


def _copy(attributes: Any, memo: dict[int, Any]) -> Any:
    """A copy is as large as what it was made of, so its size is not added up again for each attribute."""
    return LimitedSizeDict({name: value.__deepcopy__(memo) for name, value in attributes.items()})
