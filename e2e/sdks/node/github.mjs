// Walks lists of a repository with @octokit/rest and prints what it found: one JSON
// object, list name -> records, as the package shows them.
//
//     node github.mjs BASE TOKEN walk | LIST,LIST... | write DIRECT
//
// Of the lists rate is what is left, and create makes an issue. write reads after each write, also
// from the address DIRECT.
import { Octokit } from '@octokit/rest';

const [baseUrl, auth, does] = process.argv.slice(2);
// With HTTPS_PROXY it is asked by the line of docs/reference/proxy.md.
const { ProxyAgent, fetch: undiciFetch } = process.env.HTTPS_PROXY ? await import('undici') : {};
const dispatcher = ProxyAgent && new ProxyAgent(process.env.HTTPS_PROXY);
const request = dispatcher && { fetch: (url, options) => undiciFetch(url, { ...options, dispatcher }) };
const client = (baseUrl, auth) => new Octokit({ baseUrl, auth, request, log: { debug() {}, info() {}, warn() {}, error() {} } });
const octokit = client(baseUrl, auth);
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
const create = () => alone(issues.create, { ...at, title: 'Written' });
const write = async (direct) => {
  const out = { through: {}, direct: {} };
  const clients = { through: octokit, direct: client(direct, 'slowapitoken') };
  let issue_number = 1, comment_id = 1;
  const read = async (step) => {
    for (const [way, c] of Object.entries(clients)) {
      const { issues, repos } = c.rest;
      const reads = {
        issues: () => c.paginate(issues.listForRepo, at),
        all: () => c.paginate(issues.listForRepo, { ...at, state: 'all' }),
        comments: () => c.paginate(issues.listCommentsForRepo, at),
        labels: () => c.paginate(issues.listLabelsForRepo, at),
        repo: async () => [(await repos.get({ owner: at.owner, repo: at.repo })).data],
        issue: async () => [(await issues.get({ owner: at.owner, repo: at.repo, issue_number })).data],
        'its comments': () => c.paginate(issues.listComments, { ...at, issue_number }),
        'its labels': () => c.paginate(issues.listLabelsOnIssue, { ...at, issue_number }),
        label: async () => [(await issues.getLabel({ owner: at.owner, repo: at.repo, name: 'late' })).data],
        comment: async () => [(await issues.getComment({ owner: at.owner, repo: at.repo, comment_id })).data],
      };
      for (const [name, one] of Object.entries(reads)) {
        out[way][`${step} ${name}`] = await one().catch((e) => String(e.status));
      }
    }
  };
  const { owner, repo } = at;
  await read('before');
  const steps = {
    created: async () => { issue_number = (await issues.create({ owner, repo, title: 'Written', body: 'By a test' })).data.number; },
    edited: () => issues.update({ owner, repo, issue_number, title: 'Written anew' }),
    commented: async () => { comment_id = (await issues.createComment({ owner, repo, issue_number, body: 'First' })).data.id; },
    'comment edited': () => issues.updateComment({ owner, repo, comment_id, body: 'Second' }),
    'label made': () => issues.createLabel({ owner, repo, name: 'late', color: '00ff00' }),
    labelled: () => issues.addLabels({ owner, repo, issue_number, labels: ['late', 'bug'] }),
    'comment deleted': () => issues.deleteComment({ owner, repo, comment_id }),
    closed: () => issues.update({ owner, repo, issue_number, state: 'closed' }),
    'label deleted': () => issues.deleteLabel({ owner, repo, name: 'late' }),
  };
  for (const [step, run] of Object.entries(steps)) {
    await run();
    await read(step);
  }
  return out;
};
const names = does.startsWith('write ') ? [] : does.split(',');
for (const name of does === 'walk' ? Object.keys(lists) : names) {
  try {
    found[name] = await { ...lists, rate, create, all: lists.issues_all }[name]();
  } catch (e) {
    found[name] = String(e);
  }
}
console.log(JSON.stringify(names.length > 0 ? found : await write(does.slice(6))));
