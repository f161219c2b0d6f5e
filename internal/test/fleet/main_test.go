package fleet

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE":           os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if text := os.Getenv(workerSpec); text != "" {
		os.Exit(serve(text))
	}
	os.Exit(m.Run())
}
