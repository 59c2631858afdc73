// What tests outside the package reach.

package viewer

const (
	FewVersions = defaultVersions
	OwnVersions = paramVersions
	MaxTurns    = maxTurns
	MaxLists    = maxLists
)

var (
	CompareParam = newCompareParam
	CheckJobs    = checkJobs
)
