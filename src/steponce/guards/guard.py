"""
The workflow's guarantee for plain Python: a Lambda behind a queue, a script, a web handler.

A guard and a workflow on one table share their records. Each replays the other's results, and neither runs
work that the other has begun.
"""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, Unpack, cast

import boto3
from botocore.config import Config

from steponce.aws.clients import CONFIG, locks_table_of, stack_outputs
from steponce.aws.forks import own_connections
from steponce.errors import InvalidSetting, shown
from steponce.guards.annotations import result_type
from steponce.guards.arguments import Arguments, expect_no_delivery, has_arguments, name_of
from steponce.guards.final_records import FinalRecords
from steponce.guards.holder import Holder
from steponce.guards.invocation import lambda_of, lease_of, owner_of
from steponce.guards.namesakes import Namesakes
from steponce.guards.plain import plain_argument
from steponce.guards.run import Run
from steponce.guards.terms import Terms, as_it_is
from steponce.guards.threads import in_thread
from steponce.guards.typed import keep, restore
from steponce.locks.record import Lock
from steponce.locks.results import results_in
from steponce.locks.table import Locks
from steponce.recovery.owner import WhenOutcomeUnknown
from steponce.request.canonical import canonical_json, sha256
from steponce.request.envelope import check_lock_token
from steponce.request.settings import RequestRules

if TYPE_CHECKING:
    from typing import Literal

F = TypeVar("F", bound=Callable[..., Any])

_CONFIG = CONFIG.merge(Config(parameter_validation=False))
"""boto3's check of each parameter takes 4 % of a call. DynamoDB checks them anyway."""

DISABLED = "STEPONCE_DISABLED"
"""The environment variable that disables every guard while it is `true`. For tests; ignored on Lambda."""


class Options(TypedDict, total=False):
    """The options of a guard, a function and a single call. `Terms` explains each."""

    lease_seconds: float | None
    when_outcome_unknown: WhenOutcomeUnknown
    when_completed: Literal["replay", "refuse"]
    releases: tuple[type[BaseException], ...]
    final: tuple[type[BaseException], ...]
    wait_seconds: float
    renew: bool
    on_replay: Callable[[Any, Lock], Any] | None
    serialize: Callable[[Any], Any]
    deserialize: Callable[[Any], Any]


class Guard:
    """
    Runs work at most once under its key, and replays its outcome to every other call.

    Args:
        locks_table: The name of the table; the stack's Output `LocksTable`.
        key_prefix: Prefix of the keys of decorated functions. It keeps two programs on one table apart.
            Default: the prefix in `rules`.
        rules: Retention, payload hash and shards. Use those of the workflows on this table. Default: the
            template's defaults.
        cache_size: How many final records to keep in memory and replay from there. 0 keeps none. An erased
            record is replayed from memory until the process ends.
        session: Your own boto3 session.
        config: Your own botocore config. It overrides the default one.
        endpoints: Other addresses for `dynamodb` and for all other services (`aws`), as a local stack has.
        result_bucket: The bucket of results that are too large for a record; the Output `ResultBucket`.
            Without it such a result is refused.
        options: The options of all calls; see `Terms`.

    One guard may serve many functions, threads and tasks.
    """

    def __init__(
        self,
        locks_table: str,
        *,
        key_prefix: str | None = None,
        rules: RequestRules | None = None,
        cache_size: int = 0,
        session: boto3.Session | None = None,
        config: Config | None = None,
        endpoints: Mapping[str, str] | None = None,
        result_bucket: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        rules = rules or RequestRules(key_prefix="")
        self._rules = rules if key_prefix is None else replace(rules, key_prefix=key_prefix)
        self._table = locks_table
        self._terms = Terms(**options)
        session, at = session or boto3.Session(), endpoints or {}
        config = _CONFIG.merge(config) if config else _CONFIG
        made = session.client("dynamodb", config=config, endpoint_url=at.get("dynamodb"))
        self._dynamodb = own_connections(made)
        self._locks = Locks(self._dynamodb, locks_table)
        self._results = results_in(result_bucket, session, config, at)
        self._final_records = FinalRecords(_size(cache_size))
        self._namesakes = Namesakes()

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, str], **options: Any) -> Self:
        """
        Make a guard from a stack's Outputs: on its table, with its rules and its bucket.

        Raises:
            InvalidSetting: an Output is missing or malformed.
        """
        options = {"result_bucket": outputs.get("ResultBucket")} | options
        return cls(locks_table_of(outputs), rules=RequestRules.from_settings(outputs), **options)

    @classmethod
    def from_stack(cls, name: str, *, session: boto3.Session | None = None, **options: Any) -> Self:
        """
        Make a guard on the table of a stack that was deployed on AWS.

        Args:
            name: The CloudFormation stack's name. The guard reads its Outputs.
            options: As for a Guard.

        Raises:
            StackNotFound: this account and region have no stack of this name.
            InvalidSetting: as `from_outputs`.
        """
        session = session or boto3.Session()
        outputs = stack_outputs(session, name, options.get("config"))
        return cls.from_outputs(outputs, session=session, **options)

    def begin(self, lock_token: str, payload: Any, *, context: Any = None, **options: Unpack[Options]) -> Run:
        """
        Prepare one call. `with` or `async with` takes its lock, or finds its recorded outcome.

            with guard.begin("acme/charge/o-12", order) as run:
                if not run.replayed:
                    run.complete(charge(order))
                return run.result

        Args:
            lock_token: The business key, used unchanged; at most 2,048 bytes.
            payload: What every call under the key must share: JSON, a dataclass or a pydantic model. The
                record keeps only its hash.
            context: Lambda's context. It sets the length of the lease and the owner in the record.
            options: The options of this call; see `Terms`.

        Raises:
            InvalidRequest: the key or payload cannot be used.
            InvalidSetting: the name of the guard's table, or an option, is not what it can be; or the payload
                is a whole message of SQS, of which each delivery differs.

        Entering the block raises:
            AlreadyInProgress: another call holds the lock, and may still work.
            RequestFailed: the request has failed, finally or until a person settles it.
            DuplicateRefused: the request is completed, and `when_completed` is `refuse`.
            PayloadMismatch: the key was used with another payload.
            Unavailable: DynamoDB did not answer. Nothing ran.
            RecordUnreadable: another program has damaged the record.
            ResultUnreadable: the answer is a large result that cannot be read from the stack's bucket.
        """
        check_lock_token(lock_token)
        plain = plain_argument(payload)
        if self._rules.payload_hash_path is None:
            how = 'begin(f"mail/{record[\'messageId\']}", record["body"])'
            expect_no_delivery(plain, f"The payload of {lock_token!r}", how)
        payload_hash = self._hash(plain)
        return self._run(lock_token, payload_hash, context, replace(self._terms, **options))

    def idempotent(
        self,
        *,
        lock_token: str | None = None,
        payload: str | None = None,
        name: str | None = None,
        **options: Unpack[Options],
    ) -> Callable[[F], F]:
        """
        Guard every call of a function or method, sync or async.

            @guard.idempotent(lock_token="order.orderId", payload="order")
            def charge(order: Order) -> Charge: ...

        Args:
            lock_token: JMESPath into the call's arguments that finds the business key. The key gets the
                guard's prefix and `name` in front. Default: the payload's hash.
            payload: JMESPath to what every call under the key must share. Default: all arguments except
                self, cls and a Lambda's context.
            name: Keeps the functions of one guard apart. Default: the function's qualified name, so give a
                name before you rename the function. A Lambda's handler, which gets a context, has the
                Lambda's name before its own, because most handlers have one name. "" makes the key of a
                workflow with this prefix, if that workflow has a LockTokenPath to the same value, or if
                the value is a request id of `[0-9A-Za-z_-]{1,72}` that does not end like `--2`, or `--x`
                and a hash. Any other request id has a slug in its key: both would work.
            options: The options of this function; see `Terms`.

        Raises:
            InvalidSetting: it is a lambda, a functools.partial or another callable without a name.
                Give `name`.
            ValueError: this guard has a function of the same qualified name in another module. Each would
                get the other's results.

        Warns of another function of the same qualified name in the same module, of a second one that is
        around another function, and of a function without arguments that has neither `name` nor
        `lock_token`: all its calls are one request.

        A result goes through JSON, for the first call as for a replay, and has the type of the function's
        annotation again: a dataclass, TypedDict, pydantic model, or a list, dict or union of these. The
        classes of a union need different fields, or a field with a Literal. `serialize` and `deserialize`
        replace this conversion. Calls raise what `begin` and its block raise.
        """

        def decorate(function: F) -> F:
            if isinstance(function, classmethod | staticmethod):
                return type(function)(decorate(function.__func__))
            runs = _what_runs(function)
            if inspect.isgeneratorfunction(runs) or inspect.isasyncgenfunction(runs):
                raise TypeError(f"{name_of(function)} yields, so it has no result to record.")
            if name is None:
                self._expect_alone(function)
                if lock_token is None and not has_arguments(function):
                    warnings.warn(
                        f"{name_of(function)} has no arguments, so all its calls are one request. Let an "
                        "argument tell them apart; or, if it is to run once at all, give it a name.",
                        RuntimeWarning,
                        stacklevel=2,  # where the function is decorated
                    )
            call = _Call(self, function, name, lock_token, payload, self._typed(function, options))
            is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(runs)
            guarded = call.as_async() if is_async else call.as_sync()
            return cast(F, guarded)

        return decorate

    def _expect_alone(self, function: Callable[..., Any]) -> None:
        """
        Refuse a function without a name, and a second one of the same name in another module.

        Lambdas of a module have one name. Warn of another function of the same name and module: both work,
        but they may share their results.
        """
        if name_of(function).endswith(">"):
            raise InvalidSetting(
                f"{name_of(function)} has no name that keeps its keys apart from another's. Give it one: "
                'guard.idempotent(name="charge").'
            )
        problem = self._namesakes.meet(function)
        if problem is not None:
            warnings.warn(problem, RuntimeWarning, stacklevel=3)  # where the function is decorated

    def _typed(self, function: Callable[..., Any], options: Options) -> Callable[[], Terms]:
        """The terms of a function's calls, made at the first call: annotations may name later definitions."""

        @functools.cache
        def terms() -> Terms:
            found = replace(self._terms, **options)
            if found.serialize is not as_it_is or found.deserialize is not as_it_is:
                return found
            kind = result_type(function)
            return replace(
                found,
                serialize=lambda result: keep(result, kind),
                deserialize=lambda value: restore(value, kind),
            )

        return terms

    def _hash(self, payload: Any) -> str:
        """The payload's hash, as a workflow with these rules makes it."""
        if self._rules.payload_hash_path is not None and isinstance(payload, Mapping):
            return self._rules.payload_hash(payload)
        return sha256(canonical_json(payload))

    def _run(self, lock_token: str, payload_hash: str, context: Any, terms: Terms) -> Run:
        lease, holder = lease_of(terms, context), None
        if not _is_disabled():
            self._expect_table()
            holder = Holder(
                self._dynamodb,
                self._table,
                lock_token=lock_token,
                request_id=lock_token.removeprefix(f"{self._rules.key_prefix}/") or lock_token,
                payload_hash=payload_hash,
                locked_by=owner_of(context),
                rules=self._rules,
            )
        return Run(holder, self._locks, lock_token, terms, lease, self._final_records, self._results)

    def _expect_table(self) -> None:
        """Refuse an invalid table name at the first call: a guard disabled in tests may have none."""
        if not isinstance(self._table, str) or not self._table:
            raise InvalidSetting(
                f"The guard's lock table {shown(self._table)} is no name. Give the stack's Output "
                "LocksTable, and look whether an environment variable is not set."
            )

    def _key(self, name: str, key: Any, where: str | None) -> str:
        """The lock token of a decorated function's call."""
        text = key if isinstance(key, str) else canonical_json(key, where or "key")
        token = "/".join(part for part in (self._rules.key_prefix, name, text) if part)
        check_lock_token(token)
        return token


class _Call:
    """A decorated function. Each of its calls becomes a run."""

    def __init__(
        self,
        guard: Guard,
        function: Callable[..., Any],
        name: str | None,
        lock_token: str | None,
        payload: str | None,
        terms: Callable[[], Terms],
    ) -> None:
        self._guard = guard
        self._function = function
        self._name = name
        self._lock_token = lock_token
        self._arguments = Arguments(function, lock_token, payload, guard._rules.payload_hash_path)
        self._terms = terms

    def as_sync(self) -> Callable[..., Any]:
        @functools.wraps(self._function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            with self._begin(args, kwargs) as run:
                if not run.replayed:
                    run.complete(self._function(*args, **kwargs))
                return run.result

        return guarded

    def as_async(self) -> Callable[..., Any]:
        @functools.wraps(self._function)
        async def guarded(*args: Any, **kwargs: Any) -> Any:
            async with self._begin(args, kwargs) as run:
                if not run.replayed:
                    result = await self._function(*args, **kwargs)
                    await in_thread(functools.partial(run.complete, result))
                return run.result

        return guarded

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
        document, context = self._arguments.read(args, kwargs)
        payload = self._arguments.payload(document)
        payload_hash = self._guard._hash(payload)
        key = self._arguments.key(document, payload)
        key = payload_hash if key is None else key
        token = self._guard._key(self._name_of(context), key, self._lock_token)
        return self._guard._run(token, payload_hash, context, self._terms())

    def _name_of(self, context: Any) -> str:
        """What keeps this function's keys apart. Two Lambdas on one table may get the same event."""
        if self._name is not None:
            return self._name
        qualified = str(self._function.__qualname__)
        place = None if context is None else lambda_of(context)
        return f"{place}/{qualified}" if place else qualified


def _size(of_cache: object) -> int:
    if isinstance(of_cache, bool) or not isinstance(of_cache, int) or of_cache < 0:
        raise InvalidSetting(f"cache_size is {shown(of_cache)}. Give a number of records, or 0 to keep none.")
    return of_cache


def _what_runs(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, or the method that runs if an object is called."""
    if inspect.isroutine(function) or isinstance(function, functools.partial | type):
        return function
    return type(function).__call__


def _is_disabled() -> bool:
    if os.environ.get(DISABLED, "").lower() != "true":
        return False
    if os.environ.get("AWS_LAMBDA_FUNCTION_NAME"):
        warnings.warn(f"{DISABLED} is for tests, and is ignored on Lambda.", RuntimeWarning, stacklevel=4)
        return False
    return True
