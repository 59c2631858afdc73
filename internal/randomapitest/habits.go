// Habits: what APIs do differently from each other, each with a public API that does it.

// Package randomapitest draws random APIs for tests: HTTP handlers with seeded records, each
// with its own habits of paging. Habits are a table, and every pair of habits that can stand
// together occurs. An API has an OpenAPI document or nothing but its answers. It knows
// which records a client must hold that has walked its list to a proven end, and whether its
// answers prove their end at all.
package randomapitest

import "slices"

// Habit is one way in which APIs behave.
type Habit struct {
	Axis string // what it is about; an API has one habit of each axis
	Name string // unique among all habits
	API  string // a public API that has it
}

// Habits are all habits, axis by axis.
var Habits = []Habit{
	{"paging", wholeList, "REST Countries, /all"},
	{"paging", pageNumber, "TMDb"},
	{"paging", offset, "Spotify"},
	{"paging", lastID, "Stripe"},
	{"paging", tokenInBody, "Slack"},
	{"paging", tokenInHeader, "Azure Cosmos DB, x-ms-continuation"},
	{"paging", linkHeader, "GitHub"},
	{"paging", linkHeaderToken, "Okta"},
	{"paging", nextPageHeader, "GitLab, X-Next-Page"},
	{"paging", relativeLink, "Twilio, next_page_uri"},
	{"paging", absoluteLink, "PokeAPI"},
	{"paging", absoluteLinkToken, "Microsoft Graph"},
	{"paging", nextPageInBody, "Harvest, next_page"},
	{"paging", nextOffsetInBody, "Pipedrive, next_start"},

	{"end", nextIsNull, "Asana, next_page"},
	{"end", nextIsAbsent, "Google Drive, nextPageToken"},
	{"end", nextIsEmpty, "Slack, next_cursor"},
	{"end", moreTrue, "Stripe, has_more"},
	{"end", moreText, "Alibaba Cloud OSS, IsTruncated as XML turned into JSON"},
	{"end", moreTitle, "Amazon MWS, HasNext as .NET programs write it"},
	{"end", moreNumber, "Bilibili, has_more"},
	{"end", moreDigit, "Last.fm, numbers as texts"},
	{"end", moreLetter, "Kiwoom Securities, cont-yn"},
	{"end", moreWord, "Yahoo Groups, yes and no"},
	{"end", moreNull, "etcd's gateway, whose false values are left out"},
	{"end", moreSometimes, "MediaWiki, batchcomplete on some pages"},
	{"end", lastTrue, "Jira, isLast"},
	{"end", totalReached, "Jira, total"},
	{"end", emptyPage, "Discord, messages"},
	{"end", errorBeyond, "WordPress, 400 behind the last page"},
	{"end", lastPageAgain, "Magento 2, the last page again and again"},

	{"total", noTotal, "Slack"},
	{"total", totalHonest, "Jira"},
	{"total", totalLow, "Elasticsearch, hits.total with its upper limit"},
	{"total", totalMinusOne, "Elasticsearch, hits.total that is not tracked"},
	{"total", totalZero, "ServiceTitan, totalCount unless it is asked for"},
	{"total", totalText, "Intuit QuickBooks, counts with decimals"},
	{"total", totalFirstPage, "Microsoft Graph, @odata.count"},
	{"total", totalOfPage, "Bitbucket Server, size"},
	{"total", totalHeader, "WordPress, X-WP-Total"},
	{"total", totalPages, "TMDb, total_pages"},

	{"middle", fullPages, "GitHub"},
	{"middle", shortPages, "X, posts left out after paging"},
	{"middle", emptyPages, "Amazon DynamoDB, filtered scans"},

	{"size", sizeHonoured, "JSONPlaceholder, _limit"},
	{"size", sizeCapped, "GitHub, at most 100"},
	{"size", sizeRefused, "HubSpot, 400 above 100"},
	{"size", sizeIgnored, "OMDb, pages of 10"},
	{"size", sizeRounded, "ConductorOne, 10 records where fewer are asked for"},

	{"life", tokensLive, "Stripe"},
	{"life", tokensDie400, "Square, cursors of five minutes"},
	{"life", tokensDie403, "Azure Storage, links whose signature has ended"},
	{"life", tokensDie404, "Elasticsearch, a scroll that is gone"},
	{"life", tokensDie410, "Google Calendar, 410 Gone"},
	{"life", tokensDie422, "GitHub, 422 behind what a search serves"},
	{"life", tokensTooShort, "Elasticsearch, scrolls kept for a minute"},

	{"names", snakeCase, "Stripe, has_more"},
	{"names", camelCase, "Google Drive, nextPageToken"},
	{"names", dottedNames, "Microsoft Graph, @odata.nextLink"},

	{"envelope", array, "GitHub"},
	{"envelope", data, "Stripe"},
	{"envelope", items, "Spotify"},
	{"envelope", kindName, "Twilio"},
	{"envelope", nested, "Last.fm"},
	{"envelope", withMeta, "Intercom"},
	{"envelope", odata2, "SAP, d.results"},

	{"id", numberID, "GitHub"},
	{"id", prefixedID, "Stripe"},
	{"id", digitsID, "Discord"},
	{"id", uuidID, "DigitalOcean"},
	{"id", uuidField, "Bitbucket"},
	{"id", sidField, "Twilio"},
	{"id", gidField, "Asana"},
	{"id", keyField, "Jira"},
	{"id", sharedKey, "PagerDuty, incident_key"},

	{"rows", rowsStill, "REST Countries"},
	{"rows", rowsAdded, "Twilio, messages"},
	{"rows", rowsDeleted, "GitHub, issues moved elsewhere"},
	{"rows", rowsAddedDeleted, "Hacker News, newest"},

	{"token", noToken, "TMDb"},
	{"token", tokenLetters, "Slack"},
	{"token", tokenDigits, "Twitter 1.1, next_cursor_str"},
	{"token", tokenEscaped, "Amazon, base64 with +, / and ="},

	{"order", newestFirst, "Stripe"},
	{"order", oldestFirst, "PokeAPI"},

	{"told", toldByDocument, "GitHub, its OpenAPI document"},
	{"told", toldByAnswers, "PokeAPI, no document"},
}

// The habits by name.
const (
	wholeList         = "the whole list at once"
	pageNumber        = "a page's number"
	offset            = "an offset"
	lastID            = "the last id"
	tokenInBody       = "a token in the body"
	tokenInHeader     = "a token in a header"
	linkHeader        = "a Link header with a page's number"
	linkHeaderToken   = "a Link header with a token"
	nextPageHeader    = "the next page's number in a header"
	relativeLink      = "a relative link in the body"
	absoluteLink      = "an absolute link in the body"
	absoluteLinkToken = "an absolute link with a token"
	nextPageInBody    = "the next page's number in the body"
	nextOffsetInBody  = "the next offset in the body"

	nextIsNull    = "next is null"
	nextIsAbsent  = "next is absent"
	nextIsEmpty   = "next is an empty text"
	moreTrue      = "more: true, false"
	moreText      = `more: "true", "false"`
	moreTitle     = `more: "True", "False"`
	moreNumber    = "more: 1, 0"
	moreDigit     = `more: "1", "0"`
	moreLetter    = `more: "Y", "N"`
	moreWord      = `more: "yes", "no"`
	moreNull      = "more: true, null"
	moreSometimes = "more: true, false, on some pages"
	lastTrue      = "last: false, true"
	totalReached  = "the total is reached"
	emptyPage     = "an empty page behind the last"
	errorBeyond   = "an error behind the last page"
	lastPageAgain = "the last page again behind it"

	noTotal        = "no total"
	totalHonest    = "an honest total"
	totalLow       = "a total that is too low"
	totalMinusOne  = "total: -1"
	totalZero      = "total: 0"
	totalText      = `total: "25.0"`
	totalFirstPage = "a total on the first page"
	totalOfPage    = "a total of the page"
	totalHeader    = "a total in a header"
	totalPages     = "a number of pages"

	fullPages  = "full pages"
	shortPages = "short pages in the middle"
	emptyPages = "empty pages in the middle"

	sizeHonoured = "any size"
	sizeCapped   = "sizes up to a largest"
	sizeRefused  = "sizes above the largest are refused"
	sizeIgnored  = "sizes are ignored"
	sizeRounded  = "sizes of 10, 20 and 50"

	tokensLive     = "tokens for ever"
	tokensDie400   = "tokens end with 400"
	tokensDie403   = "tokens end with 403"
	tokensDie404   = "tokens end with 404"
	tokensDie410   = "tokens end with 410"
	tokensDie422   = "tokens end with 422"
	tokensTooShort = "tokens end before the list does"

	snakeCase   = "snake_case"
	camelCase   = "camelCase"
	dottedNames = "dotted names"

	array    = "no envelope"
	data     = "rows in data"
	items    = "rows in items"
	kindName = "rows in the kind's name"
	nested   = "rows in a nested object"
	withMeta = "rows beside meta"
	odata2   = "rows in d.results"

	numberID   = "id: number"
	prefixedID = "id: text with a prefix"
	digitsID   = "id: digits as text"
	uuidID     = "id: UUID"
	uuidField  = "uuid"
	sidField   = "sid"
	gidField   = "gid"
	keyField   = "key"
	sharedKey  = "key that several records have"

	rowsStill        = "rows stay"
	rowsAdded        = "rows are added"
	rowsDeleted      = "rows are deleted"
	rowsAddedDeleted = "rows are added and deleted"

	noToken      = "no token"
	tokenLetters = "tokens of letters"
	tokenDigits  = "tokens of digits"
	tokenEscaped = "tokens that a URL escapes"

	newestFirst = "the newest first"
	oldestFirst = "the oldest first"

	toldByDocument = "a document"
	toldByAnswers  = "sample answers"
)

var (
	moreSpellings  = []string{moreTrue, moreText, moreTitle, moreNumber, moreDigit, moreLetter, moreWord, moreNull}
	tokenPagings   = []string{tokenInBody, tokenInHeader, linkHeaderToken, absoluteLinkToken}
	numberPagings  = []string{pageNumber, offset, linkHeader, nextPageHeader, relativeLink, absoluteLink, nextPageInBody, nextOffsetInBody}
	pagePagings    = []string{pageNumber, linkHeader, nextPageHeader, nextPageInBody}
	headerPagings  = []string{tokenInHeader, linkHeader, linkHeaderToken, nextPageHeader}
	linkPagings    = []string{relativeLink, absoluteLink, absoluteLinkToken}
	shortLives     = []string{tokensDie400, tokensDie403, tokensDie404, tokensDie410, tokensDie422, tokensTooShort}
	lyingTotals    = []string{totalLow, totalMinusOne, totalZero, totalOfPage}
	provingTotals  = []string{totalHonest, totalText, totalFirstPage, totalHeader}
	unprovableEnds = []string{errorBeyond, lastPageAgain}
)

// rule says that an API with one of some habits has one of others, which are all of one axis.
type rule struct{ of, only []string }

// rules say which habits can stand together.
var rules = []rule{
	{[]string{wholeList}, slices.Concat(moreSpellings, []string{lastTrue, nextIsNull, totalReached, lastPageAgain})},
	{[]string{wholeList}, []string{noTotal, totalHonest, totalLow, totalMinusOne, totalZero, totalText, totalHeader}},
	{[]string{wholeList}, []string{fullPages}},
	{[]string{wholeList}, []string{sizeIgnored}},
	{[]string{wholeList}, []string{rowsStill}},
	{[]string{pageNumber, offset}, slices.Concat(moreSpellings, []string{moreSometimes, lastTrue, totalReached, emptyPage}, unprovableEnds)},
	{[]string{lastID}, slices.Concat(moreSpellings, []string{moreSometimes, emptyPage})},
	{[]string{tokenInBody}, slices.Concat(moreSpellings, []string{moreSometimes, lastTrue, nextIsNull, nextIsAbsent, nextIsEmpty, emptyPage})},
	{[]string{tokenInHeader, linkHeader, linkHeaderToken}, []string{nextIsAbsent}},
	{[]string{nextPageHeader}, []string{nextIsAbsent, nextIsEmpty}},
	{linkPagings, []string{nextIsNull, nextIsAbsent, nextIsEmpty}},
	{[]string{nextPageInBody, nextOffsetInBody}, []string{nextIsNull, nextIsAbsent}},
	{[]string{totalReached}, provingTotals},
	{unprovableEnds, slices.Concat([]string{noTotal}, lyingTotals)},
	{[]string{emptyPages}, slices.Concat(moreSpellings, []string{nextIsNull, nextIsAbsent, nextIsEmpty})},
	{[]string{emptyPages}, slices.Concat(tokenPagings, numberPagings)},
	{[]string{sharedKey}, slices.Concat([]string{wholeList, pageNumber, offset}, tokenPagings, headerPagings, linkPagings)},
	{[]string{sharedKey}, []string{fullPages}},
	{tokenPagings, []string{tokenLetters, tokenDigits, tokenEscaped}},
	{append([]string{wholeList, lastID}, numberPagings...), []string{noToken}},
	{append([]string{wholeList, lastID}, numberPagings...), []string{tokensLive}},
	{[]string{array}, slices.Concat(headerPagings, []string{wholeList, pageNumber, offset, lastID})},
	{[]string{array}, slices.Concat(unprovableEnds, []string{nextIsAbsent, nextIsEmpty, totalReached, emptyPage})},
	{[]string{array}, []string{noTotal, totalHeader}},
	{[]string{array}, []string{snakeCase, camelCase}},
	{[]string{dottedNames}, slices.Concat(linkPagings, []string{wholeList, pageNumber, offset, nextPageInBody})},
	{[]string{dottedNames, odata2}, slices.Concat(unprovableEnds, []string{nextIsNull, nextIsAbsent, nextIsEmpty, totalReached, emptyPage})},
	{[]string{odata2}, slices.Concat(linkPagings, []string{wholeList, offset})},
	{[]string{odata2}, []string{camelCase}},
}

// clash reports whether no API has both habits by any one rule.
func clash(a, b Habit) bool {
	if a.Axis == b.Axis {
		return a.Name != b.Name
	}
	return slices.ContainsFunc(rules, func(r rule) bool {
		return r.refuses(a, b) || r.refuses(b, a)
	})
}

func (r rule) refuses(a, b Habit) bool {
	return slices.Contains(r.of, a.Name) && axisOf(r.only[0]) == b.Axis && !slices.Contains(r.only, b.Name)
}

var axisByName = func() map[string]string {
	all := map[string]string{}
	for _, h := range Habits {
		all[h.Name] = h.Axis
	}
	return all
}()

func axisOf(name string) string { return axisByName[name] }
