"""Holds events, one a line, to the classes that the OpenLineage project makes of its
published schemas: package openlineage-python. Stricter than they are: every key has
to be known, and every value of the type that the schema says."""

import importlib
import json
import pkgutil
import sys
import types
import typing
import urllib.parse
from enum import Enum

import attr
import openlineage.client.generated as generated
from openlineage.client.generated import base

FACETS = {  # under which key a facet lies, as the schemas' properties say
    "nominalTime": "NominalTimeRunFacet", "parent": "ParentRunFacet", "errorMessage": "ErrorMessageRunFacet",
    "processing_engine": "ProcessingEngineRunFacet", "jobType": "JobTypeJobFacet", "documentation": "DocumentationJobFacet",
    "sourceCodeLocation": "SourceCodeLocationJobFacet", "sql": "SQLJobFacet", "schema": "SchemaDatasetFacet",
    "dataSource": "DatasourceDatasetFacet", "columnLineage": "ColumnLineageDatasetFacet",
    "inputStatistics": "InputStatisticsInputDatasetFacet", "outputStatistics": "OutputStatisticsOutputDatasetFacet",
}
BY_SCHEMA, HINTS = {}, {}
for info in pkgutil.iter_modules(generated.__path__):
    module = importlib.import_module(f"{generated.__name__}.{info.name}")
    for value in vars(module).values():
        if isinstance(value, type) and attr.has(value) and hasattr(value, "_get_schema"):
            BY_SCHEMA.setdefault(value._get_schema(), value)
seen = set()


def uri(text, place):
    if not isinstance(text, str) or not urllib.parse.urlparse(text).scheme:
        raise ValueError(f"{place}: {text!r} is no URI")


def facet(key, value, place):
    uri(value.get("_producer"), f"{place}._producer")
    cls = BY_SCHEMA.get(value.get("_schemaURL"))
    if cls is None:
        raise ValueError(f"{place}: there is no schema {value.get('_schemaURL')}")
    if cls.__name__ != FACETS[key]:
        raise ValueError(f"{place}: {cls.__name__} lies under {key}")
    seen.add(key)
    make(cls, {k: v for k, v in value.items() if k not in ("_producer", "_schemaURL")}, place)


def make(cls, value, place):
    if not isinstance(value, dict):
        raise ValueError(f"{place}: {value!r} is no {cls.__name__}")
    if cls not in HINTS:
        names = dict(vars(typing))
        for above in reversed(cls.__mro__):
            names.update(vars(sys.modules[above.__module__]))
        HINTS[cls] = {f.name: eval(f.type, names) if isinstance(f.type, str) else f.type for f in attr.fields(cls)}
    fields = {f.name: f for f in attr.fields(cls) if not f.name.startswith("_")}
    given = {}
    for key, inner in value.items():
        if key not in fields:
            raise ValueError(f"{place}: {cls.__name__} has no {key}")
        at = f"{place}.{key}"
        if key in ("facets", "inputFacets", "outputFacets"):
            for name, one in inner.items():
                facet(name, one, f"{at}.{name}")
        elif fields[key].init:
            given[key] = convert(HINTS[cls][key], inner, at)
    return cls(**given)


def convert(kind, value, place):
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kinds = [k for k in inside if k is not type(None)]
        return convert(kinds[0], value, place)  # null is never told
    if origin is list:
        if not isinstance(value, list):
            raise ValueError(f"{place}: {value!r} is no list")
        return [convert(inside[0], v, f"{place}[{i}]") for i, v in enumerate(value)]
    if origin is dict:
        return {k: convert(inside[1], v, f"{place}.{k}") for k, v in value.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if attr.has(kind):
        return make(kind, value, place)
    if kind is not typing.Any and (not isinstance(value, kind) or kind is int and isinstance(value, bool)):
        raise ValueError(f"{place}: {value!r} is no {kind.__name__}")
    return value


count = 0
for line in sys.stdin:
    event = json.loads(line)
    if event.get("schemaURL") != base.RunEvent._get_schema():
        raise SystemExit(f"schemaURL {event.get('schemaURL')}: published is {base.RunEvent._get_schema()}")
    uri(event.get("producer"), "producer")
    make(base.RunEvent, event, "event")
    seen.add(event["eventType"])
    count += 1
print(count, "events:", " ".join(sorted(seen)))
