// Walks lists of a repository with @octokit/rest and prints what it found: one JSON
// object, list name -> records, as the package shows them.
//
//     node github.mjs BASE TOKEN walk | LIST,LIST... (rate: what is left)
import { Octokit } from '@octokit/rest';

const [baseUrl, auth, does] = process.argv.slice(2);
const octokit = new Octokit({ baseUrl, auth, log: { debug() {}, info() {}, warn() {}, error() {} } });
const { repos, issues, pulls, users, rateLimit } = octokit.rest;
const at = { owner: 'acme', repo: 'tracker', per_page: 20 };
const all = (method, more = {}) => octokit.paginate(method, { ...at, ...more });
const alone = async (method, more) => [(await method(more)).data];
const one = (method, more = {}) => alone(method, { ...at, ...more });
const lists = {
  account: () => alone(users.getAuthenticated),
  user: () => alone(users.getByUsername, { username: 'acme' }),
  repo: () => one(repos.get),
  repos: () => octokit.paginate(repos.listForAuthenticatedUser, { per_page: 2 }),
  org_repos: () => octokit.paginate(repos.listForOrg, { org: 'acme', per_page: 2 }),
  issues: () => all(issues.listForRepo),
  issues_all: () => all(issues.listForRepo, { state: 'all' }),
  issues_closed: () => all(issues.listForRepo, { state: 'closed', sort: 'updated', direction: 'asc' }),
  issues_labels: () => all(issues.listForRepo, { state: 'all', labels: 'bug,ui' }),
  issues_html: () => all(issues.listForRepo, { mediaType: { format: 'full' } }),
  issue: () => one(issues.get, { issue_number: 3 }),
  comments: () => all(issues.listCommentsForRepo),
  issue_comments: () => all(issues.listComments, { issue_number: 3 }),
  labels: () => all(issues.listLabelsForRepo),
  label: () => one(issues.getLabel, { name: 'good first issue' }),
  pulls: () => all(pulls.list, { state: 'all' }),
  commits: () => all(repos.listCommits),
  releases: () => all(repos.listReleases),
  search: () => octokit.paginate(octokit.rest.search.issuesAndPullRequests, { q: 'repo:acme/tracker is:open', per_page: 20 }),
  moved: () => one(repos.get, { repo: 'site' }),
};
const found = {};
const rate = async () => {
  const { resources, rate } = (await rateLimit.get()).data;
  return [resources.core, resources.search, rate];
};
for (const name of does === 'walk' ? Object.keys(lists) : does.split(',')) {
  try {
    found[name] = await { ...lists, rate }[name]();
  } catch (e) {
    found[name] = String(e);
  }
}
console.log(JSON.stringify(found));
