#!/usr/bin/env python3
"""Tell Kubernetes what nodeproof says of this node: condition NodeproofSound of the Node, renewed every minute.

    node_condition.py            # inside a pod, see nodeproof.yaml
    node_condition.py --once     # one report

Status True = sound, or with warnings only; False = critical; Unknown = it cannot be told. A scheduler does not act on a
condition of its own accord: a taint, or a controller that reads conditions, does that. Needs nothing but the standard library.
"""

import argparse
import datetime as dt
import http.client
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.parse

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
CONDITION = "NodeproofSound"
STATUS = {0: "True", 1: "True", 2: "False"}
REASON = {0: "Sound", 1: "Warning", 2: "Critical"}
DEADLINE_S = 20.0
MESSAGE_CHARS = 1000


def ask(program: str) -> tuple[int, str]:
    """Exit code and line of ``nodeproof check``; 3 when there is no answer."""
    try:
        done = subprocess.run([program, "check"], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 3, f"nodeproof check: {error}"
    return done.returncode, (done.stdout or done.stderr).strip() or "nodeproof said nothing"


def condition(code: int, line: str, before: dict[str, str] | None, now: dt.datetime) -> dict[str, str]:
    """The condition as Kubernetes has it; the time of its last change stays while the status does."""
    status = STATUS.get(code, "Unknown")
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    same = before is not None and before.get("status") == status
    changed = before.get("lastTransitionTime", moment) if same and before is not None else moment
    return {
        "type": CONDITION,
        "status": status,
        "reason": REASON.get(code, "CannotTell"),
        "message": line[:MESSAGE_CHARS],
        "lastHeartbeatTime": moment,
        "lastTransitionTime": changed,
    }


class Api:
    """The API server, as the service account of this pod."""

    def __init__(self, address: str, account: str) -> None:
        self._address = urllib.parse.urlsplit(address)
        self._account = account

    def ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, object]:
        """The answer. Raises OSError, also for a status that is none of success."""
        with open(os.path.join(self._account, "token"), encoding="ascii") as file:
            token = file.read().strip()  # each time: it is renewed
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/strategic-merge-patch+json"
        connection = self._connection()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"{method} {path}: {error}") from None
        finally:
            connection.close()
        if answer.status >= 300:
            raise OSError(f"{method} {path}: {answer.status} {content[:200].decode('utf-8', 'replace')}")
        found: dict[str, object] = json.loads(content)
        return found

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "https":
            trust = ssl.create_default_context(cafile=os.path.join(self._account, "ca.crt"))
            return http.client.HTTPSConnection(host, port, timeout=DEADLINE_S, context=trust)
        return http.client.HTTPConnection(host, port, timeout=DEADLINE_S)


def report(api: Api, node: str, program: str) -> dict[str, str]:
    """Ask nodeproof, tell Kubernetes; the condition that was told. Raises OSError."""
    path = f"/api/v1/nodes/{urllib.parse.quote(node, safe='')}"
    status = api.ask("GET", path).get("status")
    listed = status.get("conditions", []) if isinstance(status, dict) else []
    before = next((one for one in listed if one.get("type") == CONDITION), None)
    code, line = ask(program)
    told = condition(code, line, before, dt.datetime.now(dt.UTC))
    api.ask("PATCH", f"{path}/status", json.dumps({"status": {"conditions": [told]}}).encode())
    return told


def main() -> int:
    """Report once, or for ever; a report that fails is said, and tried again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--interval", type=float, default=60.0, metavar="SECONDS")
    options = parser.parse_args()
    address = os.environ.get("KUBERNETES_API") or (
        f"https://{os.environ.get('KUBERNETES_SERVICE_HOST', '')}:{os.environ.get('KUBERNETES_SERVICE_PORT', '443')}"
    )
    api = Api(address, os.environ.get("KUBERNETES_ACCOUNT", ACCOUNT))
    node, program = os.environ.get("NODE_NAME", ""), os.environ.get("NODEPROOF", "nodeproof")
    if not node:
        print("NODE_NAME is not set: give it by the downward API (spec.nodeName)", file=sys.stderr)
        return 2
    while True:
        failed = False
        try:
            told = report(api, node, program)
            print(f"{told['type']}={told['status']} {told['reason']}: {told['message']}", flush=True)
        except (OSError, ValueError) as error:
            failed = True
            print(f"the condition of {node} was not renewed: {error}", file=sys.stderr, flush=True)
        if options.once:
            return int(failed)
        time.sleep(options.interval)


if __name__ == "__main__":
    sys.exit(main())
