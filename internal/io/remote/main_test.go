package remote_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "SECRET",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "", "AWS_PROFILE": "", "AWS_ENDPOINT_URL": "",
		"AWS_ENDPOINT_URL_S3": "", "AWS_CA_BUNDLE": "", "HTTPS_PROXY": "", "HTTP_PROXY": ""} {
		if err := os.Setenv(name, value); err != nil {
			os.Exit(2)
		}
	}
	goleak.VerifyTestMain(m)
}
