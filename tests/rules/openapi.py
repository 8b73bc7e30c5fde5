"""The HTTP API's OpenAPI document; `make openapi` writes it beside the code that it is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steponce.http_api import contract, routes

PLACE = Path(contract.__file__).with_name("openapi.json")

ABOUT = """\
Starts requests that run at most once, and tells everyone who asks the same answer.

Who calls is checked as the stack's parameter HttpAccess says: by a JSON Web Token, by a signature of AWS's \
(SigV4), or not at all. The gateway itself answers 401, 403, 404 and 429 before that, as for every API."""


def document() -> dict[str, Any]:
    """What Powertools knows of the routes, with the parameters and bodies that it cannot see."""
    app = routes.routes(client=None, callers=None, count=None)
    made = json.loads(app.get_openapi_json_schema(title="steponce", version="1", description=ABOUT))
    paths = {path.replace("{request_id}", "{requestId}"): item for path, item in made["paths"].items()}
    for item in paths.values():
        for method, operation in item.items():
            takes = contract.TAKES[method]
            parameters = [{"$ref": f"#/components/parameters/{name}"} for name in takes["parameters"]]
            responses = dict(sorted(operation["responses"].items()))
            operation |= takes | {"parameters": parameters, "responses": responses}
    components = {"schemas": contract.SCHEMAS, "parameters": contract.PARAMETERS}
    return made | {"paths": paths, "components": components}


def text() -> str:
    """The document as its file has it."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    PLACE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
