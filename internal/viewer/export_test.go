// What tests outside the package reach.

package viewer

const (
	FewVersions = fewVersions
	OwnVersions = ownVersions
	MaxTurns    = maxTurns
	MaxLists    = maxLists
)

var (
	CompareParam = compareParam
	CheckJobs    = checkJobs
)
