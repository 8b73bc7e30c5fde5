"""The store that Powertools' `@idempotent` and `@idempotent_function` are given."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import boto3
from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer, IdempotencyConfig
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from botocore.config import Config

from steponce.aws.clients import locks_table_of, stack_outputs, with_defaults
from steponce.aws.forks import own_connections
from steponce.errors import InvalidSetting
from steponce.guards.terms import Terms
from steponce.powertools.attributes import Attributes
from steponce.powertools.call import Call, Store
from steponce.powertools.nesting import Calls
from steponce.recovery.owner import WhenOutcomeUnknown
from steponce.request.settings import RequestRules

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_calls: Calls[Call] = Calls("steponce.powertools")


class LocksPersistence(BasePersistenceLayer):
    """
    Keeps the calls of Powertools' decorators as lock records: fenced, with their errors, safe when nested.

        persistence = LocksPersistence.from_stack("shop", final=(CardDeclined,))

        @idempotent(persistence_store=persistence)
        def handler(event, context): ...

    One object may serve any number of functions, threads and configurations. The decorators' options stay as
    they are. The caller gets Powertools' errors, and two of ours: RequestFailed for a request that has failed
    before, and NotRecorded (inside of Powertools' IdempotencyPersistenceLayerError) for work that is done and
    whose result is not on record.

    Args:
        table_name: The table; the stack's Output `LocksTable`, or one of your own.
        key_attr, static_pk_value, sort_key_attr: The key of a table of your own, as for Powertools'
            DynamoDBPersistenceLayer.
        expiry_attr, in_progress_expiry_attr, status_attr, data_attr, validation_key_attr: Its attributes, as
            there. The defaults are those of the stack's table.
        boto_config, boto3_session, boto3_client: Your own, as there.
        rules: The stack's, for the shards of its open index.
        lease_seconds: How long a call takes at most. Default: the time that Lambda's context leaves it, else
            900. Afterwards its outcome is unknown. Give a durable function its ExecutionTimeout, or more.
        when_outcome_unknown: `hold` leaves it to a person (FAILED, OutcomeUnknown), `take-over` lets the next
            call do the work again, as Powertools does.
        releases: Exceptions after which nothing has happened, beside RetryLater: the next call runs.
            Powertools takes every exception for one of these.
        final: Exceptions that are answers, which later calls get as RequestFailed. All others wait for a
            person on the open index, and later calls get them as RequestFailed too. Powertools does not catch
            SystemExit and the like: after them a call is in progress until its lease is over.

    Raises:
        ValueError: two attributes would have one name.
        InvalidSetting: an option is wrong, or names an exception that Powertools does not catch.
    """

    def __init__(
        self,
        table_name: str,
        *,
        key_attr: str = "lockToken",
        static_pk_value: str | None = None,
        sort_key_attr: str | None = None,
        expiry_attr: str = "ttl",
        in_progress_expiry_attr: str = "in_progress_expiration",
        status_attr: str = "status",
        data_attr: str = "result",
        validation_key_attr: str = "payloadHash",
        boto_config: Config | None = None,
        boto3_session: boto3.Session | None = None,
        boto3_client: DynamoDBClient | None = None,
        rules: RequestRules | None = None,
        lease_seconds: float | None = None,
        when_outcome_unknown: WhenOutcomeUnknown = "hold",
        releases: tuple[type[Exception], ...] = (),
        final: tuple[type[Exception], ...] = (),
    ) -> None:
        super().__init__()
        _expect_caught("releases", releases)
        _expect_caught("final", final)
        partition = None
        if sort_key_attr is not None:
            function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
            partition = (key_attr, static_pk_value or f"idempotency#{function}")
        names = {
            "lockToken": sort_key_attr or key_attr,
            "ttl": expiry_attr,
            "in_progress_expiration": in_progress_expiry_attr,
            "status": status_attr,
            "result": data_attr,
            "payloadHash": validation_key_attr,
        }
        client = boto3_client or own_connections(
            (boto3_session or boto3.Session()).client("dynamodb", config=with_defaults(boto_config))
        )
        self._store = Store(
            Attributes(names, partition).client(client),
            table_name,
            rules or RequestRules(key_prefix=""),
            Terms(
                lease_seconds=lease_seconds,
                when_outcome_unknown=when_outcome_unknown,
                releases=releases,
                final=final,
            ),
            partition[1] if partition else None,
        )

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str], **options: Any) -> Self:
        """
        Make one on a stack's table from the stack's Outputs, with its rules.

        Raises:
            InvalidSetting: an Output is missing or malformed.
        """
        return cls(locks_table_of(outputs), rules=RequestRules.from_settings(outputs), **options)

    @classmethod
    def from_stack(cls, name: str, *, boto3_session: boto3.Session | None = None, **options: Any) -> Self:
        """
        Make one on the table of a stack that was deployed on AWS.

        Args:
            name: The CloudFormation stack's name; its Outputs tell the rest.
            boto3_session: Your own session.
            options: As for a LocksPersistence.

        Raises:
            StackNotFound: there is none of this name, in this account and region.
            InvalidSetting: as `from_outputs`.
        """
        session = boto3_session or boto3.Session()
        outputs = stack_outputs(session, name, options.get("boto_config"))
        return cls.from_outputs(outputs, boto3_session=session, **options)

    # -- What Powertools calls: each call has a store of its own ---------------------------------------

    def configure(
        self, config: IdempotencyConfig, function_name: str | None = None, key_prefix: str | None = None
    ) -> None:
        """Powertools calls this as a call begins."""
        _calls.begin(Call(self._store, config, function_name, key_prefix))

    @property
    def event_key_jmespath(self) -> str:
        """Powertools names it in the error of a call that is in progress."""
        return _calls.current().event_key_jmespath

    @event_key_jmespath.setter
    def event_key_jmespath(self, expression: str) -> None:
        """Each call has its own."""

    def save_inprogress(self, data: dict[str, Any], remaining_time_in_millis: int | None = None) -> None:
        """Powertools calls this before the work."""
        _calls.current().save_inprogress(data, remaining_time_in_millis)

    def get_record(self, data: dict[str, Any]) -> DataRecord | None:
        """Powertools calls this for a record that it does not know."""
        return _calls.current().get_record(data)

    def save_success(self, data: dict[str, Any], result: dict[str, Any]) -> None:
        """Powertools calls this with the result of the work."""
        _calls.end().save_success(data, result)

    def delete_record(self, data: dict[str, Any], exception: Exception) -> None:
        """Powertools calls this with the exception of the work. After some it repeats the same call."""
        _calls.current().delete_record(data, exception)

    def _put_record(self, data_record: DataRecord) -> None:
        _calls.current()._put_record(data_record)

    def _get_record(self, idempotency_key: str) -> DataRecord:
        return _calls.current()._get_record(idempotency_key)

    def _update_record(self, data_record: DataRecord) -> None:
        _calls.current()._update_record(data_record)

    def _delete_record(self, data_record: DataRecord) -> None:
        _calls.current()._delete_record(data_record)


def _expect_caught(name: str, classes: tuple[type[Exception], ...]) -> None:
    """Refuse exceptions of which Powertools tells its store nothing. `Terms` refuses what is no exception."""
    for one in classes if isinstance(classes, tuple) else ():
        is_exception = isinstance(one, type) and issubclass(one, BaseException)
        if is_exception and not (issubclass(one, Exception) or issubclass(ExceptionGroup, one)):
            raise InvalidSetting(
                f"{name} has {one.__name__}, which Powertools does not catch, so that nothing would be "
                "recorded. Raise an Exception in its place, and name that."
            )
