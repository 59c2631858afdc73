"""Walks lists of a repository with PyGithub and prints what it found: one JSON
object, list name -> records, as upstream sent them.

    python repositories.py BASE TOKEN walk|LIST,LIST...|"write DIRECT"

Of the lists rate is what is left, and create makes an issue. write reads after each write, also
from the address DIRECT.
"""

import json
import sys

from github import Auth, Github, GithubException

base, token, does = sys.argv[1:4]


def client(base, token, lazy=False):
    return Github(base_url=base, auth=Auth.Token(token), per_page=20, retry=None, seconds_between_requests=None,
                  seconds_between_writes=None, lazy=lazy)


github = client(base, token, does == "rate")
repo = github.get_repo("acme/tracker")
lists = {
    "account": lambda: [github.get_user(), github.get_user().name and github.get_user()],
    "repos": lambda: github.get_user().get_repos(),
    "org_repos": lambda: github.get_user("acme").get_repos(),
    "issues": lambda: repo.get_issues(),
    "issues_all": lambda: repo.get_issues(state="all"),
    "issues_labels": lambda: repo.get_issues(state="all", labels=["bug", "ui"]),
    "issue": lambda: [repo.get_issue(3)],
    "comments": lambda: repo.get_issues_comments(),
    "issue_comments": lambda: repo.get_issue(3).get_comments(),
    "labels": lambda: repo.get_labels(),
    "label": lambda: [repo.get_label("good first issue")],
    "pulls": lambda: repo.get_pulls(state="all"),
    "commits": lambda: repo.get_commits(),
    "releases": lambda: repo.get_releases(),
    "search": lambda: github.search_issues("repo:acme/tracker is:open"),
    "moved": lambda: [github.get_repo("acme/site")],
}


def rate():
    told = github.get_rate_limit()
    return [told.resources.core, told.resources.search, told.rate]


def write(direct):
    out = {"through": {}, "direct": {}}
    ways = {"through": github, "direct": client(direct, "slowapitoken")}
    at = {"issue": 1, "comment": 1}

    def read(step):
        for way, one in ways.items():
            there = one.get_repo("acme/tracker")
            reads = {
                "issues": lambda: there.get_issues(),
                "all": lambda: there.get_issues(state="all"),
                "comments": lambda: there.get_issues_comments(),
                "labels": lambda: there.get_labels(),
                "repo": lambda: [there],
                "issue": lambda: [there.get_issue(at["issue"])],
                "its comments": lambda: there.get_issue(at["issue"]).get_comments(),
                "its labels": lambda: there.get_issue(at["issue"]).get_labels(),
                "label": lambda: [there.get_label("late")],
                "comment": lambda: [there.get_issue(at["issue"]).get_comment(at["comment"])],
            }
            for name, rows in reads.items():
                try:
                    out[way][step + " " + name] = [row._rawData for row in rows()]  # raw_data asks for each record
                except GithubException as e:
                    out[way][step + " " + name] = str(e.status)

    read("before")
    issue = repo.create_issue("Written", body="By a test")
    at["issue"] = issue.number
    read("created")
    issue.edit(title="Written anew")
    read("edited")
    comment = issue.create_comment("First")
    at["comment"] = comment.id
    read("commented")
    comment.edit("Second")
    read("comment edited")
    label = repo.create_label("late", "00ff00")
    read("label made")
    issue.add_to_labels("late", "bug")
    read("labelled")
    comment.delete()
    read("comment deleted")
    issue.edit(state="closed")
    read("closed")
    label.delete()
    read("label deleted")
    return out


def create():
    return [repo.create_issue("Written")]


if does.startswith("write "):
    print(json.dumps(write(does[6:])))
    sys.exit()
found = {}
for name in lists if does == "walk" else does.split(","):
    try:
        found[name] = [one.raw_data for one in {**lists, "rate": rate, "create": create, "all": lists["issues_all"]}[name]()]
    except GithubException as e:
        found[name] = str(e)
print(json.dumps(found))
