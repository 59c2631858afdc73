"""Calls every GET operation of a package that nobody here wrote, and prints what it was given: one JSON
object, the operation's name -> its result, or its error.

    python packages.py pydo|pagerduty|asana|gitlab ADDRESS SECRET < PLAN

PLAN says with what each path of the document is filled, as the imitation has it. Operations are found by
reflection over the package's clients, but for gitlab's, which are named here. In results the address, and the vendor's own, are written BASE.
"""
import inspect
import json
import logging
import sys

SIZE = 20  # rows of a page
HOSTS = {"pydo": "https://api.digitalocean.com", "asana": "https://app.asana.com", "pagerduty": "https://api.pagerduty.com",
         "gitlab": "https://gitlab.com"}



def of_pydo(address, secret, plan):
    import pydo
    from azure.core.exceptions import HttpResponseError
    from pydo.operations import _operations as generated

    client = pydo.Client(secret, endpoint=address, inference_endpoint=address, agent_endpoint=address, retry_total=0)

    def call(method, fill, pages):
        """All pages of a list, as the package's README walks them."""
        answers, page = [], {"page": 1, "per_page": SIZE} if pages else {}
        while True:
            try:
                answer = method(**fill, **page)
            except HttpResponseError as e:
                return answers + [{"status": e.status_code, "error": e.response.text() if e.response else str(e)}]
            if answer is not None and not isinstance(answer, (dict, list)):
                answer = b"".join(answer).decode()
            answers.append(answer)
            if not pages or len(answers) > 30 or not ((answer.get("links") or {}).get("pages") or {}).get("next"):
                return answers
            page["page"] += 1

    for group_name, group in sorted(vars(client).items()):
        if not type(group).__name__.endswith("Operations"):
            continue
        for name, method in inspect.getmembers(group, inspect.ismethod):
            names = inspect.unwrap(method).__code__.co_names
            builders = [getattr(generated, n) for n in names if n.startswith("build_")]
            consts = builders[0].__code__.co_consts if builders else ()
            if name.startswith("_") or "GET" not in consts:
                continue
            path = next(c for c in consts if isinstance(c, str) and c.startswith("/"))
            said, takes = plan.get(path), inspect.signature(builders[0]).parameters
            if said is None:
                continue
            fill = {n: v for n, v in {**said["vars"], **said["query"]}.items() if n in takes}
            for n, v in fill.items():
                if takes[n].annotation is int:
                    fill[n] = int(v)
            yield f"{group_name}.{name}", path, lambda method=method, fill=fill, takes=takes: call(method, fill, "page" in takes and "per_page" in takes)


def of_asana(address, secret, plan):
    import asana

    configuration = asana.Configuration()
    configuration.host, configuration.access_token, configuration.retry_strategy = address + "/api/1.0", secret, 0
    client = asana.ApiClient(configuration)

    def rows(method, fill, opts):
        try:
            found = method(*fill, dict(opts)) if opts is not None else method(*fill)
            return list(found) if inspect.isgenerator(found) else found
        except asana.rest.ApiException as e:
            return {"status": e.status, "error": (e.body or b"").decode()}

    for class_name, of in inspect.getmembers(asana, inspect.isclass):
        if not class_name.endswith("Api"):
            continue
        api = of(client)
        for name, method in inspect.getmembers(api, inspect.ismethod):
            if name.startswith("_") or name.endswith("_with_http_info"):
                continue
            consts = inspect.unwrap(getattr(of, name + "_with_http_info")).__code__.co_consts
            if "GET" not in consts:
                continue
            path = next(c for c in consts if isinstance(c, str) and c.startswith("/"))
            said = plan.get(path)
            if said is None:
                continue
            takes = list(inspect.signature(method).parameters)
            has_opts = "opts" in takes
            query = {n: v for n, v in said["query"].items() if n not in takes}
            fill = [{**said["vars"], **said["query"]}.get(n) for n in takes if n not in ("opts", "kwargs", "self")]
            opts = {**query, **({"limit": SIZE} if said["list"] else {})} if has_opts else None
            yield f"{class_name}.{name}", path, lambda method=method, fill=fill, opts=opts: rows(method, fill, opts)
            if has_opts and said["list"] and said["fields"]:
                yield f"{class_name}.{name} opt_fields", path, lambda method=method, fill=fill, opts=opts: rows(method, fill, {**opts, "opt_fields": "name"})


def of_pagerduty(address, secret, plan):
    import pagerduty

    logging.disable(logging.CRITICAL)
    client = pagerduty.RestApiV2Client(secret, base_url=address)
    client.retry = {}
    cursors = client.cursor_based_pagination_paths

    def call(path, url, said):
        try:
            headers = said["headers"]
            if not said["list"] or headers:
                try:
                    return client.rget(url, params=said["query"], headers=headers)
                except pagerduty.UrlError:
                    return client.get(url, params=said["query"], headers=headers).json()
            if path in cursors:
                return list(client.iter_cursor(url, params=said["query"], page_size=SIZE))
            try:
                return client.list_all(url, params=said["query"], page_size=SIZE)
            except pagerduty.UrlError:
                return client.get(url, params={**said["query"], "limit": SIZE}).json()
        except pagerduty.HttpError as e:
            return {"status": e.response.status_code, "error": e.response.text}
        except pagerduty.Error as e:
            return {"status": getattr(getattr(e, "response", None), "status_code", 0), "error": str(e)}

    for path, said in sorted(plan.items()):
        if path not in client.canonical_paths:
            continue
        url = path
        for name, value in said["vars"].items():
            url = url.replace("{%s}" % name, value)
        yield "GET", path, lambda path=path, url=url, said=said: call(path, url, said)


def of_gitlab(address, secret, plan):
    import gitlab

    client = gitlab.Gitlab(address, private_token=secret)
    said = {path: call["vars"] for path, call in plan.items()}

    def shown(of):
        return of.attributes if hasattr(of, "attributes") else of

    def rows(manager, **query):
        """All rows, and how many the server says there are."""
        found = manager.list(iterator=True, per_page=SIZE, **query)
        return {"total": found.total, "rows": [shown(row) for row in found]}

    def answer(ask):
        def call():
            try:
                return shown(ask())
            except gitlab.GitlabError as e:
                return {"status": e.response_code or 0, "error": str(e.response_body or e)}
        return call

    first = shown(next(client.projects.list(iterator=True, per_page=1)))
    issue = said["/projects/{id}/issues/{issue_iid}"]["issue_iid"]
    below = {"by id": client.projects.get(first["id"], lazy=True), "by path": client.projects.get(first["path_with_namespace"], lazy=True)}
    calls = {
        "ProjectManager.list /projects": lambda: rows(client.projects),
        "ProjectManager.list keyset /projects": lambda: rows(client.projects, pagination="keyset", order_by="id"),
        "GroupManager.list /groups": lambda: rows(client.groups),
        "GroupManager.get /groups/{id}": lambda: client.groups.get(said["/groups/{id}"]["id"]),
        "GroupProjectManager.list /groups/{id}/projects": lambda: rows(client.groups.get(said["/groups/{id}"]["id"], lazy=True).projects),
        "UserManager.list /users": lambda: rows(client.users),
        "UserManager.get /users/{id}": lambda: client.users.get(said["/users/{id}"]["id"]),
        "Gitlab.version /version": lambda: client.version(),
    }
    for how, project in below.items():
        notes = project.issues.get(issue, lazy=True).notes
        calls |= {
            f"ProjectManager.get {how} /projects/{{id}}": lambda project=project: client.projects.get(project.get_id()),
            f"ProjectIssueManager.list {how} /projects/{{id}}/issues": lambda project=project: rows(project.issues),
            f"ProjectIssueManager.get {how} /projects/{{id}}/issues/{{issue_iid}}": lambda project=project: project.issues.get(issue),
            f"ProjectIssueNoteManager.list {how} /projects/{{id}}/issues/{{issue_iid}}/notes": lambda notes=notes: rows(notes),
            f"ProjectBranchManager.list {how} /projects/{{id}}/repository/branches": lambda project=project: rows(project.branches),
            f"ProjectLabelManager.list {how} /projects/{{id}}/labels": lambda project=project: rows(project.labels),
            f"ProjectIssueNoteManager.get {how} /projects/{{id}}/issues/{{issue_iid}}/notes/{{note_id}}": lambda notes=notes: notes.get(
                said["/projects/{id}/issues/{issue_iid}/notes/{note_id}"]["note_id"]),
            f"ProjectBranchManager.get {how} /projects/{{id}}/repository/branches/{{name}}": lambda project=project: project.branches.get(
                said["/projects/{id}/repository/branches/{name}"]["name"]),
            f"ProjectLabelManager.get {how} /projects/{{id}}/labels/{{label_id}}": lambda project=project: project.labels.get(
                said["/projects/{id}/labels/{label_id}"]["label_id"]),
        }
    for name, ask in calls.items():
        name, _, path = name.rpartition(" ")
        yield name, path, answer(ask)


def main():
    package, address, secret = sys.argv[1:4]
    plan = {call["path"]: call for call in json.load(sys.stdin)}
    found = {}
    for name, path, call in list({"pydo": of_pydo, "asana": of_asana, "pagerduty": of_pagerduty, "gitlab": of_gitlab}[package](address, secret, plan)):
        try:
            found[f"{name} {path}"] = call()
        except Exception as e:
            found[f"{name} {path}"] = {"error": f"{type(e).__name__}: {e}"}
    print(json.dumps(found, sort_keys=True, default=repr).replace(address, "BASE").replace(HOSTS[package], "BASE"))


main()
