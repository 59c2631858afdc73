// Names: how APIs call what a spec asks for, and the words of a name.

package infer

import (
	"slices"
	"strings"
	"unicode"
)

// foldName is a name without what spellings differ in: page[size], pageSize and page_size are
// one.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// splitWords are the parts of a name in lower case: created, at of createdAt.
func splitWords(name string) []string {
	var all []string
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			all = append(all, b.String())
			b.Reset()
		}
	}
	last := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		default:
			if unicode.IsUpper(r) && unicode.IsLower(last) {
				end()
			}
			b.WriteRune(unicode.ToLower(r))
		}
		last = r
	}
	end()
	return all
}

// hasWord reports whether one of a name's words is among those given.
func hasWord(name string, among ...string) bool {
	return slices.ContainsFunc(splitWords(name), func(w string) bool { return slices.Contains(among, w) })
}

// isOneOf reports whether a name is one of those given, in any spelling.
func isOneOf(name string, among ...string) bool { return slices.Contains(among, foldName(name)) }

// singular is an English noun without its plural ending, as far as that is regular.
func singular(noun string) string {
	switch {
	case len(noun) > 4 && strings.HasSuffix(noun, "ies"):
		return noun[:len(noun)-3] + "y"
	case len(noun) > 4 && (strings.HasSuffix(noun, "sses") || strings.HasSuffix(noun, "xes") || strings.HasSuffix(noun, "ches")):
		return noun[:len(noun)-2]
	case len(noun) > 2 && strings.HasSuffix(noun, "s") && !strings.HasSuffix(noun, "ss"):
		return noun[:len(noun)-1]
	}
	return noun
}

// plural is the reverse of singular.
func plural(noun string) string {
	switch {
	case singular(noun) != noun:
		return noun // it is one
	case strings.HasSuffix(noun, "y") && len(noun) > 1 && !strings.ContainsRune("aeiou", rune(noun[len(noun)-2])):
		return noun[:len(noun)-1] + "ies"
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x") || strings.HasSuffix(noun, "ch"):
		return noun + "es"
	}
	return noun + "s"
}

// nameStem returns a plain name without id at its end.
func nameStem(name string) string { return strings.TrimSuffix(foldName(name), "id") }

// lastPart returns what stands behind the last dot of a name.
func lastPart(dotted string) string { return dotted[strings.LastIndexByte(dotted, '.')+1:] }

// snakeCase makes one word of a name that a spec file may call a kind.
func snakeCase(name string) string { return strings.Join(splitWords(name), "_") }

// The names that APIs usually give to the parts of a list.
var (
	sizeNames = []string{"perpage", "pagesize", "limit", "pagelimit", "maxresults", "size", "count", "take", "top", "rows", "maxitems",
		"maxpagesize", "itemsperpage", "resultsperpage", "recordsperpage", "num", "first", "maxkeys", "batchsize", "pagelen", "hitsperpage",
		"paginationpagesize", "sysparmlimit", "retmax", "ps"}
	pageNumberNames = []string{"page", "pagenumber", "pagenum", "pageno", "pageindex", "currentpage", "p", "pg", "pn",
		"paginationpage"}
	offsetNames = []string{"offset", "skip", "start", "startat", "startindex", "pageoffset", "startposition", "from", "firstresult",
		"index", "sysparmoffset", "retstart"}
	// afterIDNames take the id of a record; backNames of the first one.
	afterIDNames = []string{"startingafter", "after", "afterid", "sinceid", "startafter", "lastid", "fromid", "marker", "pageafter",
		"startafterid"}
	beforeIDNames = []string{"endingbefore", "before", "beforeid", "pagebefore", "untilid", "maxid"}
	// tokenNames take a token of the API's own.
	tokenNames = []string{"cursor", "pagetoken", "pagecursor", "nextcursor", "nexttoken", "nextpagetoken", "continuationtoken", "continuation",
		"continue", "after", "pageafter", "startkey", "marker", "bookmark", "scrollid", "position", "token", "starttoken", "startcursor",
		"aftercursor", "skiptoken", "next", "page", "startingafter", "exclusivestartkey", "pagekey", "pageid", "paginationtoken"}
	// commonTokens are the parameters that the links of most APIs have.
	commonTokens = []string{"cursor", "page_token", "pageToken", "page_info", "after", "continuation_token", "continuationToken", "$skiptoken"}
	// numericTokenNames take a token that may be a number.
	numericTokenNames = []string{"cursor", "pagetoken", "pagecursor", "nextcursor", "nexttoken", "nextpagetoken", "continuationtoken",
		"continuation", "scrollid", "bookmark"}
	nextLinkNames = []string{"next", "nextpage", "nexturl", "nextlink", "nextpageuri", "nextpageurl", "nextpagelink", "nexthref",
		"odatanextlink", "linksnext", "linksnexthref", "nexturi", "pagingnext", "linknext"}
	nextTokenNames = []string{"nextcursor", "nextpagetoken", "nexttoken", "continuationtoken", "continuation", "continue", "cursor",
		"endcursor",
		"after", "scrollid", "nextmarker", "bookmark", "lastevaluatedkey", "nextpage", "next", "nextkey", "nextposition", "pagetoken",
		"nextid", "token", "cursornext", "cursorsafter", "cursorafter", "nextstart", "aftercursor"}
	totalNames = []string{"total", "totalcount", "totalresults", "totalitems", "totalelements", "totalrows", "totalrecords", "totalsize",
		"totalhits", "fullcount", "recordstotal",
		"odatacount"}
	rowNames = []string{"data", "items", "results", "result", "records", "entries", "rows", "values", "value", "list", "objects", "content",
		"elements", "resources", "hits", "nodes"}
	// timeObjects are parts of a record that have its times.
	timeObjects = []string{"attributes", "properties", "meta", "metadata", "timestamps", "audit", "dates"}
	// idFields name a record, the likely ones first.
	idFields = []string{"id", "sid", "uuid", "guid", "gid", "uid", "_id", "objectid", "sha", "arn", "urn"}
	// clockFields tell when a record came to be, the likely ones first.
	clockFields = []string{"createdat", "created", "datecreated", "createtime", "creationtime", "creationdate", "createdon", "createddate",
		"createdtime", "creationtimestamp", "createdtimestamp", "insertedat", "occurredat", "starttime", "startedat", "timestamp",
		"submittedat", "publishedat",
		"receivedat", "sentat", "datesent", "loggedat", "time", "datetime", "date", "ts", "at"}
)

// commonVars are variables that records of any kind have.
var commonVars = append([]string{"name", "code", "slug", "number", "key", "path"}, idFields...)
