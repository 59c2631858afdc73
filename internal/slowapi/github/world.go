// The generated world: users, repositories and their records.

package github

import (
	_ "embed"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// The tags that separate the random numbers of different kinds of records.
const (
	tagIssue = iota + 0x6769740000
	tagComment
	tagCommit
	tagRelease
	tagNode
)

//go:embed world.json
var rawPlan []byte

// plan has the repositories, labels and titles from which the simulated records are generated. movedName is a former
// name of the second repository.
var plan = format.DecodeEmbedded[struct {
	Repositories []struct {
		Name, About, Language string
		Share                 int // the percentage of all issues that are in the repository
	}
	Labels [][3]string // the name, the color and the description of each label
	Titles []string    // the first words of issue titles
}](rawPlan)

const (
	movedName = "acme/site"
	forkName  = "robin/tracker" // the name of a fork of the first repository, which has the older half of its commits
)

// issueDays is the number of days over which issues and commits are distributed.
const issueDays = 700

// builder generates records and adds them. After New, its callers must hold World.Mu for writing.
type builder struct {
	world         *table.World
	shapes        map[string]*table.Template
	people        []*table.Row      // the users that write issues, comments and commits
	newestIssues  map[string]int    // the number of the newest issue, by the name of the repository
	newestCommits map[string]string // the SHA of the newest commit, by the name of the repository
	commentCount  int               // the number of comments that have been added, including deleted ones
}

// generate adds the users, the repositories and their records.
func (b *builder) generate() {
	b.addUser(b.world.Account, "User")
	b.addUser("acme", "Organization")
	ascii := strings.NewReplacer("é", "e", "á", "a", "í", "i", "ø", "o", "ë", "e", "'", "")
	for _, name := range fake.Names() {
		b.addUser(ascii.Replace(strings.ToLower(name))+"-dev", "User")
	}
	b.people = b.world.Kinds["users"].Rows()[2:]
	end := b.world.Epoch.Unix()
	for n, r := range plan().Repositories {
		id := int64(530_000_000 + 7919*n)
		owner, name, _ := strings.Cut(r.Name, "/")
		of := b.world.Kinds["users"].Find(owner)
		v := table.Values{
			"id": id, "node_id": nodeID("R_", id), "name": name, "full_name": r.Name, "owner": b.user(owner), "description": r.About,
			"created": table.Stamp(end - (issueDays+30)*86400), "updated": table.Stamp(end), "pushed": table.Stamp(end), "size": int64(4096),
			"fork": r.Name == forkName, "stars": int64(80 + n), "language": r.Language, "forks": int64(9), "open_issues": int64(0),
		}
		if of.Text("type") == "Organization" {
			v["organization"] = v["owner"]
		}
		b.world.Kinds["repos"].Add(r.Name, v)
		for i, l := range plan().Labels {
			b.addLabel(r.Name, l[0], l[1], l[2], int64(i+1), true)
		}
	}
	for i := range b.world.Records {
		at := end - int64(b.world.Records-1-i)*issueDays*86400/int64(max(b.world.Records, 1))
		b.generateIssue(i, at)
	}
	for i := range b.world.Records / 2 {
		b.generateCommit(i, end-int64(b.world.Records/2-1-i)*issueDays*86400/int64(max(b.world.Records/2, 1)))
	}
	for i := range max(b.world.Records/50, 1) {
		b.generateRelease(i, end-int64(max(b.world.Records/50, 1)-i)*86400)
	}
}

func nodeID(prefix string, id int64) string {
	d := fake.RngFor(0, tagNode, id)
	return prefix + "kgDO" + string(d.Hex(nil, 6))
}

// addUser adds a user or an organization, if there is none with the login.
func (b *builder) addUser(login, sort string) {
	if b.world.Kinds["users"].Find(login) != nil {
		return
	}
	id := int64(1_000_000 + 4099*len(b.world.Kinds["users"].Rows()))
	b.world.Kinds["users"].Add(login, table.Values{
		"login": login, "id": id, "node_id": nodeID("U_", id), "type": sort, "name": login, "location": "Bern", "view": "public",
		"email": login + "@example.com", "created": table.Stamp(b.world.Epoch.Unix() - 2000*86400),
	})
}

// user returns the user with a login in the form that other records contain. It returns nil if there is none.
func (b *builder) user(login string) any {
	if r := b.world.Kinds["users"].Find(login); r != nil {
		return table.Part{Template: b.shapes["user"], Values: r.Values}
	}
	return nil
}

// addLabel adds a label to a repository. number must be unique in the repository.
func (b *builder) addLabel(repo, name, color, about string, number int64, standard bool) *table.Row {
	id := b.world.Kinds["repos"].Find(repo).Number("id")*100 + number
	v := table.Values{"id": id, "node_id": nodeID("LA_", id), "repo": repo, "path": url.PathEscape(name), "name": name, "color": color,
		"default": standard, "description": nil}
	if about != "" {
		v["description"] = about
	}
	return b.world.Kinds["labels"].Add(repo+"/labels/"+strings.ToLower(name), v)
}

// labelParts returns the labels of a repository that have these names. If a label does not exist, it creates it, as
// GitHub does.
func (b *builder) labelParts(repo string, names []string) []table.Part {
	parts := []table.Part{}
	for _, name := range names {
		r := b.world.Kinds["labels"].Find(repo + "/labels/" + strings.ToLower(name))
		if r == nil {
			r = b.addLabel(repo, name, "ededed", "", int64(len(b.world.Kinds["labels"].Rows())), false)
		}
		parts = append(parts, table.Part{Template: b.shapes["label"], Values: r.Values})
	}
	return parts
}

// addIssue adds an issue with the next number to a repository.
func (b *builder) addIssue(repo string, v table.Values) *table.Row {
	b.newestIssues[repo]++
	n := int64(b.newestIssues[repo])
	id := 2_000_000_000 + 37*int64(len(b.world.Kinds["issues"].Rows()))
	all := table.Values{
		"repo": repo, "number": n, "id": id, "node_id": nodeID("I_", id), "place": "issues", "state": "open", "closed": table.Stamp(0),
		"comments": int64(0), "assignees": []table.Part{}, "labels": []table.Part{},
	}
	maps.Copy(all, v)
	return b.world.Kinds["issues"].Add(fmt.Sprintf("%s#%d", repo, n), all)
}

// generateIssue adds an issue with its comments. One in four issues is a pull request.
func (b *builder) generateIssue(i int, at int64) {
	d := b.world.Random(tagIssue, i)
	repo, share := plan().Repositories[0].Name, d.IntBelow(100)
	for _, r := range plan().Repositories {
		if repo = r.Name; share < r.Share {
			break
		}
		share -= r.Share
	}
	author := b.people[d.IntBelow(len(b.people))].ID
	v := table.Values{
		"user": b.user(author), "login": author,
		"title": strings.ToUpper(plan().Titles[d.IntBelow(len(plan().Titles))]) + " " + strconv.Itoa(100+d.IntBelow(900)),
		"body":  fake.Body(d, false), "created": table.Stamp(at), "updated": table.Stamp(at + int64(d.IntBelow(3*86400))),
	}
	v["updated"] = min(v["updated"].(table.Stamp), table.Stamp(max(b.world.Epoch.Unix(), at)))
	if d.IntBelow(3) == 0 {
		who := b.people[d.IntBelow(len(b.people))].ID
		v["assignee"], v["assignees"] = b.user(who), []table.Part{b.user(who).(table.Part)}
	}
	var names []string
	for range d.IntBelow(3) {
		if name := plan().Labels[d.IntBelow(len(plan().Labels))][0]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	v["labels"] = b.labelParts(repo, names)
	if d.IntBelow(6) == 0 {
		number := int64(1 + d.IntBelow(2))
		v["milestone"] = table.Part{Template: b.shapes["milestone"], Values: table.Values{
			"repo": repo, "number": number, "id": 9_000_000 + number,
			"node_id": nodeID("MI_", number), "title": "v" + strconv.FormatInt(number, 10), "creator": b.user(author),
			"created": table.Stamp(b.world.Epoch.Unix() - issueDays*86400)}}
	}
	if d.IntBelow(5) < 3 {
		v["state"], v["closed"], v["state_reason"] = "closed", v["updated"], "completed"
	}
	r := b.addIssue(repo, v)
	if d.IntBelow(4) == 0 {
		b.makePull(r, &d)
	}
	for n := range d.IntBelow(4) {
		b.addComment(r, author, fake.Body(b.world.Random(tagComment, 4*i+n), false), min(at+int64(60*(n+1)), max(b.world.Epoch.Unix(), at)))
	}
	r.Values["updated"] = max(r.Values["updated"].(table.Stamp), table.Stamp(at))
}

// makePull turns an issue into a pull request.
func (b *builder) makePull(r *table.Row, d *fake.Rng) {
	repo, number := r.Text("repo"), r.Number("number")
	id, merged := 1_500_000_000+31*r.Number("id")%400_000_000, table.Stamp(0)
	sha := func() string { return string(d.Hex(nil, 20)) }
	if r.Text("state") == "closed" {
		merged = r.Values["closed"].(table.Stamp)
	}
	head := sha()
	owner, _, _ := strings.Cut(repo, "/")
	repository := table.Part{Template: b.shapes["repository"], Values: b.world.Kinds["repos"].Find(repo).Values}
	branch := func(ref, sha string) table.Part {
		return table.Part{Template: b.shapes["branch"], Values: table.Values{"login": owner, "ref": ref, "sha": sha, "owner": b.user(owner),
			"repository": repository}}
	}
	maps.Copy(r.Values, table.Values{
		"place": "pull", "draft": d.IntBelow(10) == 0, "state_reason": nil, "pull_id": id, "pull_node_id": nodeID("PR_",
			id), "merged": merged, "was_merged": merged != 0,
		"merge_sha": sha(), "sha": head, "head": branch("change-"+strconv.FormatInt(number, 10), head), "base": branch("main", sha()),
		"mergeable_state": "unknown", "commits": int64(1 + d.IntBelow(4)), "additions": int64(d.IntBelow(400)),
		"deletions": int64(d.IntBelow(90)), "files": int64(1 + d.IntBelow(9)),
		"pull_request": table.Part{Template: b.shapes["issue_pull"], Values: table.Values{"repo": repo, "number": number, "merged": merged}},
	})
	if merged == 0 {
		r.Values["mergeable"], r.Values["mergeable_state"] = true, "clean"
	} else {
		r.Values["merged_by"] = r.Values["user"]
	}
}

// addComment adds a comment to an issue.
func (b *builder) addComment(issue *table.Row, login, body string, at int64) *table.Row {
	b.commentCount++
	id, repo := 1_700_000_000+int64(b.commentCount), issue.Text("repo")
	issue.Values = issue.Values.With(table.Values{"comments": issue.Number("comments") + 1, "updated": max(table.Stamp(at),
		issue.Values["updated"].(table.Stamp))})
	return b.world.Kinds["comments"].Add(strconv.FormatInt(id, 10), table.Values{
		"repo": repo, "number": issue.Number("number"), "id": id, "node_id": nodeID("IC_",
			id), "user": b.user(login), "login": login, "body": body,
		"created": table.Stamp(at), "updated": table.Stamp(at),
	})
}

// generateCommit adds a commit to a repository. It also adds older commits of the first repository to its fork.
func (b *builder) generateCommit(i int, at int64) {
	d := b.world.Random(tagCommit, i)
	repo := plan().Repositories[d.IntBelow(len(plan().Repositories)-1)].Name
	sha, tree, who := string(d.Hex(nil, 20)), string(d.Hex(nil, 20)), b.people[d.IntBelow(len(b.people))].ID
	message, last := fake.Body(d, false), b.newestCommits[repo]
	b.newestCommits[repo] = sha
	in := []string{repo}
	if repo == plan().Repositories[0].Name && at < b.world.Epoch.Unix()-issueDays/2*86400 {
		in = append(in, forkName)
	}
	for n, repo := range in {
		parents := []table.Part{}
		if last != "" {
			parents = append(parents, table.Part{Template: b.shapes["parent"], Values: table.Values{"repo": repo, "sha": last}})
		}
		b.world.Kinds["commits"].Add(repo+"/commits/"+sha, table.Values{
			"sha": sha, "node_id": nodeID("C_", int64(i)+int64(n)<<32), "repo": repo, "tree": tree, "user": b.user(who), "login": who, "name": who,
			"email": who + "@users.noreply.example.com", "created": table.Stamp(at), "message": message, "parents": parents,
		})
	}
}

// generateRelease adds a release to a repository.
func (b *builder) generateRelease(i int, at int64) {
	d := b.world.Random(tagRelease, i)
	id, tag := int64(90_000_000+i), fmt.Sprintf("v%d.%d.0", 1+i/10, i%10)
	b.world.Kinds["releases"].Add(strconv.FormatInt(id, 10), table.Values{
		"repo": plan().Repositories[i%2].Name, "id": id, "node_id": nodeID("RE_", id), "tag": tag, "name": tag, "user": b.user(b.world.Account),
		"prerelease": i%7 == 6, "created": table.Stamp(at), "body": fake.Body(d, false),
	})
}
