// What tests outside the package reach.

package viewer

const (
	FewVersions = defaultVersions
	OwnVersions = paramVersions
	MaxTurns    = maxRecentMessages
	MaxLists    = maxLists
)

var (
	CompareParam = newCompareParam
	CheckJobs    = checkJobs
)
