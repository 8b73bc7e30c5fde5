"""How definitions are read."""

import json

import pytest
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor
from moto.stepfunctions.responses import StepFunctionResponse

from steponce.local.moto_patches import definitions

IN_PATHS = {"Type": "Pass", "ResultPath": "$.r", "End": True}
IN_JSONATA = {"QueryLanguage": "JSONata", "Type": "Pass", "Output": {"a": 1}, "End": True}


def definition(state):
    return json.dumps({"StartAt": "Only", "States": {"Only": {**state, "Comment": ""}}})


@pytest.mark.parametrize(("outer", "inner"), [(IN_JSONATA, IN_PATHS), (IN_PATHS, IN_JSONATA)])
def test_definitions_that_are_read_at_once_keep_their_query_languages(monkeypatch, outer, inner):
    """One in JSONata among others made the others fail, at random."""
    read = []

    def read_another(reader, context):
        if not read:
            read.append("begun")
            read.append(AmazonStateLanguageParser.parse(definition(inner))[0])
        return comment_of(reader, context)

    comment_of = Preprocessor.visitComment_decl
    monkeypatch.setattr(Preprocessor, "visitComment_decl", read_another)
    monkeypatch.setattr(Preprocessor, "__init__", Preprocessor.__init__)
    for action in ("create_state_machine", "update_state_machine"):
        monkeypatch.setattr(StepFunctionResponse, action, getattr(StepFunctionResponse, action))
    definitions.install()
    assert AmazonStateLanguageParser.parse(definition(outer))[0] is not None
    assert 2 == len(read)
