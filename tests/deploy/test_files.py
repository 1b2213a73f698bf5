"""The files of deploy/: each is read by the tool that knows its format, and says what it is there to say."""

import subprocess
import sys
from pathlib import Path

import yaml

from deploy import proxy

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
CLUSTER = {
    resource["kind"]: resource for resource in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
}


def checked(*command: str) -> tuple[int, str]:
    made = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    return made.returncode, made.stdout + made.stderr


def compose_check(path: Path) -> tuple[int, str]:
    return checked("check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path))


def cluster_check(path: Path) -> tuple[int, str]:
    code, output = checked("kubernetes_validate", "--strict", str(path))
    return code, output


def test_compose_is_valid(tmp_path):
    assert compose_check(DEPLOY / "compose.yaml")[0] == 0
    wrong = tmp_path / "compose.yaml"
    wrong.write_text((DEPLOY / "compose.yaml").read_text().replace("pids_limit", "pid_limit"))
    assert compose_check(wrong)[0] == 1


def test_kubernetes_is_valid(tmp_path):
    code, output = cluster_check(DEPLOY / "kubernetes.yaml")
    assert code == 0 and output.count(" passed ") == len(CLUSTER) == 4
    wrong = tmp_path / "kubernetes.yaml"
    wrong.write_text((DEPLOY / "kubernetes.yaml").read_text().replace("replicas: 2", "replicsa: 2"))
    assert cluster_check(wrong)[0] != 0


def test_compose_has_two_processes_where_nginx_looks_for_them():
    processes = {
        name: service for name, service in COMPOSE["services"].items() if service["image"] == "attnviz"
    }
    addresses = [process["networks"]["inside"]["ipv4_address"] + ":8501" for process in processes.values()]
    assert addresses == list(proxy.COMPOSED) and len(addresses) == 2
    assert set(COMPOSE["services"]["proxy"]["depends_on"]) == set(processes)
    for process in processes.values():
        assert process["read_only"] and process["cap_drop"] == ["ALL"]
        assert set(process["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
        assert [mount.split(":")[0] for mount in process["tmpfs"]] == ["/data"]
    assert COMPOSE["networks"]["inside"]["internal"]


def test_nginx_conf_is_what_is_written_for_compose():
    """Where it fails: `python -m deploy.proxy`."""
    assert proxy.FILE.read_text(encoding="utf-8") == proxy.composed()


def test_a_pod_is_not_root_and_writes_to_one_folder():
    pod = CLUSTER["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/data"]
    assert {"requests", "limits"} == set(container["resources"])
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/_stcore/health", "port": "http"}


def test_a_visitor_stays_with_a_pod():
    notes = CLUSTER["Ingress"]["metadata"]["annotations"]
    settings = {name.rpartition("/")[2]: value for name, value in notes.items()}
    assert settings["affinity"] == "cookie" and settings["session-cookie-change-on-failure"] == "true"
    backend = CLUSTER["Ingress"]["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    assert backend["name"] == CLUSTER["Service"]["metadata"]["name"]
    assert CLUSTER["Service"]["spec"]["selector"] == CLUSTER["Deployment"]["spec"]["selector"]["matchLabels"]
    target = CLUSTER["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", CLUSTER["Deployment"]["metadata"]["name"])
