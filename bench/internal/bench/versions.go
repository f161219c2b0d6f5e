package bench

import (
	"context"
	"debug/buildinfo"
)

// versions names everything that takes part; what cannot be found is left out.
func versions(ctx context.Context, c Config) map[string]string {
	v := map[string]string{}
	if info, err := buildinfo.ReadFile(c.Thalweg); err == nil {
		v["go"] = info.GoVersion
		for _, d := range info.Deps {
			if d.Path == "github.com/duckdb/duckdb-go/v2" {
				v["duckdb-go"] = d.Version
			}
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v["thalweg"] = s.Value
			case "vcs.modified":
				v["thalweg_modified"] = s.Value
			}
		}
	}
	add := func(key string, args ...string) {
		if text, err := output(ctx, c.Root, args...); err == nil && text != "" {
			v[key] = text
		}
	}
	add("repository", "git", "describe", "--always", "--dirty", "--abbrev=12")
	add("python", c.Python, "-c", "import platform; print(platform.python_implementation(), platform.python_version())")
	add("java", "sh", "-c", "java -version 2>&1 | head -n 1")
	return v
}
