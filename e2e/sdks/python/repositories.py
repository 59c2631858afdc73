"""Walks lists of a repository with PyGithub and prints what it found: one JSON
object, list name -> records, as upstream sent them.

    python repositories.py BASE TOKEN walk|LIST,LIST... (rate: what is left)
"""

import json
import sys

from github import Auth, Github, GithubException

base, token, does = sys.argv[1:4]
github = Github(base_url=base, auth=Auth.Token(token), per_page=20, retry=None, seconds_between_requests=None, seconds_between_writes=None,
                lazy=does == "rate")
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


found = {}
for name in lists if does == "walk" else does.split(","):
    try:
        found[name] = [one.raw_data for one in {**lists, "rate": rate}[name]()]
    except GithubException as e:
        found[name] = str(e)
print(json.dumps(found))
