package view

// Build holds the version and origin of the build.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	Engine  string `json:"engine"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}
