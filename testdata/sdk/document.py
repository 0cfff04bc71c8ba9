"""Holds all traffic of the official SDK to the API's OpenAPI document: every answer that its HTTP client gets, and every
request that was taken. watch() starts it, for synchronous and asynchronous clients alike."""
import collections
import json
import pathlib
import re

import httpx
import jsonschema
import yaml

FILE = pathlib.Path(__file__).parents[2] / "internal" / "sandbox" / "testdata" / "openapi.yaml"
OWN = {"SupportedModel": "stand_in", "ModelResources": "stand_in", "Session": "stand_in"}  # members that the sandbox adds
PRESIGNED = re.compile(r"^/(payloads|files)/[^/]+$")
formats = jsonschema.FormatChecker(formats=())


@formats.checks("uri")
def _address(value):
    return not isinstance(value, str) or re.match(r"^https?://[^/]+/", value)


@formats.checks("date-time")
def _utc(value):
    return not isinstance(value, str) or re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value)


@formats.checks("int32")
def _int32(value):
    return not isinstance(value, int) or abs(value) < 1 << 31


def _closed(value):
    """The schema, without room for members that it does not name."""
    if isinstance(value, list):
        return [_closed(v) for v in value]
    if not isinstance(value, dict):
        return value
    value = {k: _closed(v) for k, v in value.items()}
    if value.get("type") == "object":
        value.setdefault("additionalProperties", False)
    if "allOf" in value:
        value["unevaluatedProperties"] = False
        value["allOf"] = [{k: v for k, v in part.items() if k != "additionalProperties"} for part in value["allOf"]]
    return value


class Document:
    def __init__(self):
        root = yaml.safe_load(FILE.read_text())
        self.requests = root["components"]
        strict = _closed(root)["components"]
        strict["schemas"]["Int64"] = {"type": "string", "pattern": "^(0|-?[1-9][0-9]*)$"}
        del strict["schemas"]["OperationBase"]["additionalProperties"]
        for schema, member in OWN.items():
            strict["schemas"][schema]["properties"][member] = {"const": True}
        self.answers = strict
        self.operations = []
        for path, item in root["paths"].items():
            pattern = re.compile("^" + re.sub(r"\{[^}]+\}", "[^/]+", path) + "$")
            for method in item.keys() - {"parameters"}:
                op = item[method]
                answer = _closed(op)["responses"]["200"]["content"]["application/json"]["schema"]
                body = op.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
                self.operations.append((method.upper(), path, pattern, answer, body))
        # Literal segments before parameters, so that the first match is the right one.
        self.operations.sort(key=lambda o: o[1].count("{"))
        self.seen = collections.Counter()  # (method, path of the document, status)
        self.requests_sent = []  # (method, path, headers, status), in order

    def validate(self, schema, components, value, what):
        whole = {**schema, "components": components}
        errors = list(jsonschema.Draft202012Validator(whole, format_checker=formats).iter_errors(value))
        if errors:
            raise AssertionError(f"{what}: {errors[0].json_path}: {errors[0].message}")

    def check(self, request, response):
        method, path = request.method, request.url.path
        what = f"{method} {path}: {response.status_code} {response.text[:300]}"
        self.requests_sent.append((method, path, request.headers, response.status_code))
        if PRESIGNED.match(path):
            self.seen[method, "presigned", response.status_code] += 1
            return
        for m, template, pattern, answer, body in self.operations:
            if m == method and pattern.match(path):
                break
        else:
            raise AssertionError(f"{what}: the document has no such operation")
        self.seen[method, template, response.status_code] += 1
        if response.status_code != 200:
            self.validate({"$ref": "#/components/schemas/ErrorData"}, self.answers, response.json(), what)
            return
        self.validate(answer, self.answers, response.json(), what)
        if body is not None:
            self.validate(body, self.requests, json.loads(request.content), f"the request of {what}")

    def never_answered(self):
        """The operations that no 200 was seen of."""
        done = {(m, p) for m, p, status in self.seen if status == 200}
        return [f"{m} {p}" for m, p, *_ in self.operations if (m, p) not in done]


def watch():
    """Puts the document between httpx and its callers."""
    document = Document()
    send, asend = httpx.Client.send, httpx.AsyncClient.send

    def checked(self, request, **kwargs):
        response = send(self, request, **kwargs)
        response.read()
        document.check(request, response)
        return response

    async def achecked(self, request, **kwargs):
        response = await asend(self, request, **kwargs)
        await response.aread()
        document.check(request, response)
        return response

    httpx.Client.send, httpx.AsyncClient.send = checked, achecked
    return document
