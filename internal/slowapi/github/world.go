// World: the made-up repositories, and what is in them.

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

// Tags of the draws, one for each sort of thing.
const (
	tagIssue = iota + 0x6769740000
	tagComment
	tagCommit
	tagRelease
	tagNode
)

//go:embed world.json
var rawPlan []byte

// plan is what a world is drawn from. The moved name leads to the second repository.
var plan = format.DecodeEmbedded[struct {
	Repositories []struct {
		Name, About, Language string
		Share                 int // of 100 issues
	}
	Labels [][3]string // name, color, description
	Titles []string    // how titles begin
}](rawPlan)

const (
	movedName = "acme/site"
	forkName  = "robin/tracker" // a fork of the first, with the older half of its commits
)

// days are how many of the world's issues are spread over.
const days = 700

// builder makes the records of a world. It has what the next of them are made of.
type builder struct {
	world    *table.World
	shapes   map[string]*table.Template
	people   []*table.Row
	numbers  map[string]int    // the newest issue of each repository
	heads    map[string]string // the newest commit of each
	comments int
}

// seed fills the world.
func (b *builder) seed() {
	b.person(b.world.Account, "User")
	b.person("acme", "Organization")
	for _, name := range fake.Names() {
		b.person(plainLogin(name), "User")
	}
	b.people = b.world.Kinds["users"].Rows()[2:]
	end := b.world.Epoch.Unix()
	for n, r := range plan().Repositories {
		id := int64(530_000_000 + 7919*n)
		owner, name, _ := strings.Cut(r.Name, "/")
		of := b.world.Kinds["users"].Find(owner)
		v := table.Values{
			"id": id, "node_id": nodeID("R_", id), "name": name, "full_name": r.Name, "owner": b.user(owner), "description": r.About,
			"created": table.Stamp(end - (days+30)*86400), "updated": table.Stamp(end), "pushed": table.Stamp(end), "size": int64(4096),
			"fork": r.Name == forkName, "stars": int64(80 + n), "language": r.Language, "forks": int64(9), "open_issues": int64(0),
		}
		if of.Text("type") == "Organization" {
			v["organization"] = v["owner"]
		}
		b.world.Kinds["repos"].Add(r.Name, v)
		for i, l := range plan().Labels {
			b.label(r.Name, l[0], l[1], l[2], int64(i+1), true)
		}
	}
	for i := range b.world.Records {
		at := end - int64(b.world.Records-1-i)*days*86400/int64(max(b.world.Records, 1))
		b.issue(i, at)
	}
	for i := range b.world.Records / 2 {
		b.commit(i, end-int64(b.world.Records/2-1-i)*days*86400/int64(max(b.world.Records/2, 1)))
	}
	for i := range max(b.world.Records/50, 1) {
		b.release(i, end-int64(max(b.world.Records/50, 1)-i)*86400)
	}
}

// plainLogin makes a login of a name: letters of ASCII.
func plainLogin(name string) string {
	name = strings.NewReplacer("é", "e", "á", "a", "í", "i", "ø", "o", "ë", "e", "'", "").Replace(strings.ToLower(name))
	return name + "-dev"
}

func nodeID(prefix string, id int64) string {
	d := fake.RngFor(0, tagNode, id)
	return prefix + "kgDO" + string(d.Hex(nil, 6))
}

// person adds a user or an organization.
func (b *builder) person(login, sort string) {
	if b.world.Kinds["users"].Find(login) != nil {
		return
	}
	id := int64(1_000_000 + 4099*len(b.world.Kinds["users"].Rows()))
	b.world.Kinds["users"].Add(login, table.Values{
		"login": login, "id": id, "node_id": nodeID("U_", id), "type": sort, "name": login, "location": "Bern", "view": "public",
		"email": login + "@example.com", "created": table.Stamp(b.world.Epoch.Unix() - 2000*86400),
	})
}

// user is a person as other records show it; nil for nobody.
func (b *builder) user(login string) any {
	if r := b.world.Kinds["users"].Find(login); r != nil {
		return table.Part{Template: b.shapes["user"], Values: r.Values}
	}
	return nil
}

// label adds a label to a repository.
func (b *builder) label(repo, name, color, about string, number int64, standard bool) *table.Row {
	id := b.world.Kinds["repos"].Find(repo).Number("id")*100 + number
	v := table.Values{"id": id, "node_id": nodeID("LA_", id), "repo": repo, "path": url.PathEscape(name), "name": name, "color": color,
		"default": standard, "description": nil}
	if about != "" {
		v["description"] = about
	}
	return b.world.Kinds["labels"].Add(repo+"/labels/"+strings.ToLower(name), v)
}

// labelled are the labels of a repository with these names; names that it has not
// are made, as GitHub makes them.
func (b *builder) labelled(repo string, names []string) []table.Part {
	parts := []table.Part{}
	for _, name := range names {
		r := b.world.Kinds["labels"].Find(repo + "/labels/" + strings.ToLower(name))
		if r == nil {
			r = b.label(repo, name, "ededed", "", int64(len(b.world.Kinds["labels"].Rows())), false)
		}
		parts = append(parts, table.Part{Template: b.shapes["label"], Values: r.Values})
	}
	return parts
}

// add adds an issue to a repository under its next number.
func (b *builder) add(repo string, v table.Values) *table.Row {
	b.numbers[repo]++
	n := int64(b.numbers[repo])
	id := 2_000_000_000 + 37*int64(len(b.world.Kinds["issues"].Rows()))
	all := table.Values{
		"repo": repo, "number": n, "id": id, "node_id": nodeID("I_", id), "place": "issues", "state": "open", "closed": table.Stamp(0),
		"comments": int64(0), "assignees": []table.Part{}, "labels": []table.Part{},
	}
	maps.Copy(all, v)
	return b.world.Kinds["issues"].Add(fmt.Sprintf("%s#%d", repo, n), all)
}

// issue makes the next issue, one in four of them a pull request, with its comments.
func (b *builder) issue(i int, at int64) {
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
	v["labels"] = b.labelled(repo, names)
	if d.IntBelow(6) == 0 {
		number := int64(1 + d.IntBelow(2))
		v["milestone"] = table.Part{Template: b.shapes["milestone"], Values: table.Values{
			"repo": repo, "number": number, "id": 9_000_000 + number,
			"node_id": nodeID("MI_", number), "title": "v" + strconv.FormatInt(number, 10), "creator": b.user(author),
			"created": table.Stamp(b.world.Epoch.Unix() - days*86400)}}
	}
	if d.IntBelow(5) < 3 {
		v["state"], v["closed"], v["state_reason"] = "closed", v["updated"], "completed"
	}
	r := b.add(repo, v)
	if d.IntBelow(4) == 0 {
		b.makePull(r, &d)
	}
	for n := range d.IntBelow(4) {
		b.comment(r, author, fake.Body(b.world.Random(tagComment, 4*i+n), false), min(at+int64(60*(n+1)), max(b.world.Epoch.Unix(), at)))
	}
	r.Values["updated"] = max(r.Values["updated"].(table.Stamp), table.Stamp(at))
}

// makePull makes a pull request of an issue.
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

// comment adds a comment to an issue.
func (b *builder) comment(issue *table.Row, login, body string, at int64) *table.Row {
	b.comments++
	id, repo := 1_700_000_000+int64(b.comments), issue.Text("repo")
	issue.Values = issue.Values.With(table.Values{"comments": issue.Number("comments") + 1, "updated": max(table.Stamp(at),
		issue.Values["updated"].(table.Stamp))})
	return b.world.Kinds["comments"].Add(strconv.FormatInt(id, 10), table.Values{
		"repo": repo, "number": issue.Number("number"), "id": id, "node_id": nodeID("IC_",
			id), "user": b.user(login), "login": login, "body": body,
		"created": table.Stamp(at), "updated": table.Stamp(at),
	})
}

// commit adds a commit to a repository.
func (b *builder) commit(i int, at int64) {
	d := b.world.Random(tagCommit, i)
	repo := plan().Repositories[d.IntBelow(len(plan().Repositories)-1)].Name
	sha, tree, who := string(d.Hex(nil, 20)), string(d.Hex(nil, 20)), b.people[d.IntBelow(len(b.people))].ID
	message, last := fake.Body(d, false), b.heads[repo]
	b.heads[repo] = sha
	in := []string{repo}
	if repo == plan().Repositories[0].Name && at < b.world.Epoch.Unix()-days/2*86400 {
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

// release adds a release to a repository.
func (b *builder) release(i int, at int64) {
	d := b.world.Random(tagRelease, i)
	id, tag := int64(90_000_000+i), fmt.Sprintf("v%d.%d.0", 1+i/10, i%10)
	b.world.Kinds["releases"].Add(strconv.FormatInt(id, 10), table.Values{
		"repo": plan().Repositories[i%2].Name, "id": id, "node_id": nodeID("RE_", id), "tag": tag, "name": tag, "user": b.user(b.world.Account),
		"prerelease": i%7 == 6, "created": table.Stamp(at), "body": fake.Body(d, false),
	})
}
