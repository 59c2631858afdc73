// This file contains the usual names of parameters and fields in APIs, and functions that compare names.

package infer

import (
	"slices"
	"strings"
	"unicode"
)

// foldName returns a name in lower case without its punctuation, so that page[size], pageSize and page_size compare equal.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// splitWords returns the words of a name in lower case. The words of createdAt are created and at.
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

// hasWord reports whether a name contains one of the given words.
func hasWord(name string, among ...string) bool {
	return slices.ContainsFunc(splitWords(name), func(w string) bool { return slices.Contains(among, w) })
}

// isOneOf reports whether a name equals one of the given names, which are written as foldName returns them.
func isOneOf(name string, among ...string) bool { return slices.Contains(among, foldName(name)) }

// singular returns an English noun without its regular plural ending.
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

// plural returns the regular plural of an English noun.
func plural(noun string) string {
	switch {
	case singular(noun) != noun:
		return noun // the noun is already a plural
	case strings.HasSuffix(noun, "y") && len(noun) > 1 && !strings.ContainsRune("aeiou", rune(noun[len(noun)-2])):
		return noun[:len(noun)-1] + "ies"
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x") || strings.HasSuffix(noun, "ch"):
		return noun + "es"
	}
	return noun + "s"
}

// nameStem returns the folded name without "id" at its end.
func nameStem(name string) string { return strings.TrimSuffix(foldName(name), "id") }

// lastPart returns the part of a dotted name after the last dot.
func lastPart(dotted string) string { return dotted[strings.LastIndexByte(dotted, '.')+1:] }

// snakeCase returns the words of a name joined by underscores, as spec files write the name of a kind.
func snakeCase(name string) string { return strings.Join(splitWords(name), "_") }

// The usual names of parameters and response members, as foldName returns them. Likelier names come first.
var (
	sizeNames = []string{"perpage", "pagesize", "limit", "pagelimit", "maxresults", "size", "count", "take", "top", "rows", "maxitems",
		"maxpagesize", "itemsperpage", "resultsperpage", "recordsperpage", "num", "first", "maxkeys", "batchsize", "pagelen", "hitsperpage",
		"paginationpagesize", "sysparmlimit", "retmax", "ps"}
	pageNumberNames = []string{"page", "pagenumber", "pagenum", "pageno", "pageindex", "currentpage", "p", "pg", "pn", "paginationpage"}
	offsetNames     = []string{"offset", "skip", "start", "startat", "startindex", "pageoffset", "startposition", "from", "firstresult",
		"index", "sysparmoffset", "retstart"}
	// afterIDNames are parameters that take the id of the last record on a page; beforeIDNames take the id of the first.
	afterIDNames = []string{"startingafter", "after", "afterid", "sinceid", "startafter", "lastid", "fromid", "marker", "pageafter",
		"startafterid"}
	beforeIDNames = []string{"endingbefore", "before", "beforeid", "pagebefore", "untilid", "maxid"}
	// tokenNames are parameters that take a cursor token, which only the API can read.
	tokenNames = []string{"cursor", "pagetoken", "pagecursor", "nextcursor", "nexttoken", "nextpagetoken", "continuationtoken", "continuation",
		"continue", "after", "pageafter", "startkey", "marker", "bookmark", "scrollid", "position", "token", "starttoken", "startcursor",
		"aftercursor", "skiptoken", "next", "page", "startingafter", "exclusivestartkey", "pagekey", "pageid", "paginationtoken"}
	// commonTokens are the parameters that the page links of most APIs contain, as they are spelled there.
	commonTokens = []string{"cursor", "page_token", "pageToken", "page_info", "after", "continuation_token", "continuationToken", "$skiptoken"}
	// numericTokenNames are parameters that take a cursor token which may consist of digits.
	numericTokenNames = []string{"cursor", "pagetoken", "pagecursor", "nextcursor", "nexttoken", "nextpagetoken", "continuationtoken",
		"continuation", "scrollid", "bookmark"}
	nextLinkNames = []string{"next", "nextpage", "nexturl", "nextlink", "nextpageuri", "nextpageurl", "nextpagelink", "nexthref",
		"odatanextlink", "linksnext", "linksnexthref", "nexturi", "pagingnext", "linknext"}
	nextTokenNames = []string{"nextcursor", "nextpagetoken", "nexttoken", "continuationtoken", "continuation", "continue", "cursor",
		"endcursor", "after", "scrollid", "nextmarker", "bookmark", "lastevaluatedkey", "nextpage", "next", "nextkey", "nextposition",
		"pagetoken", "nextid", "token", "cursornext", "cursorsafter", "cursorafter", "nextstart", "aftercursor"}
	totalNames = []string{"total", "totalcount", "totalresults", "totalitems", "totalelements", "totalrows", "totalrecords", "totalsize",
		"totalhits", "fullcount", "recordstotal", "odatacount"}
	rowNames = []string{"data", "items", "results", "result", "records", "entries", "rows", "values", "value", "list", "objects", "content",
		"elements", "resources", "hits", "nodes"}
	// timeObjects are objects inside a record that hold its times.
	timeObjects = []string{"attributes", "properties", "meta", "metadata", "timestamps", "audit", "dates"}
	// idFields are fields that hold the id of a record.
	idFields = []string{"id", "sid", "uuid", "guid", "gid", "uid", "_id", "objectid", "sha", "arn", "urn"}
	// clockFields are fields that hold the time at which a record was created.
	clockFields = []string{"createdat", "created", "datecreated", "createtime", "creationtime", "creationdate", "createdon", "createddate",
		"createdtime", "creationtimestamp", "createdtimestamp", "insertedat", "occurredat", "starttime", "startedat", "timestamp",
		"submittedat", "publishedat", "receivedat", "sentat", "datesent", "loggedat", "time", "datetime", "date", "ts", "at"}
)

// commonVars are path variables whose names do not show a kind.
var commonVars = append([]string{"name", "code", "slug", "number", "key", "path"}, idFields...)
