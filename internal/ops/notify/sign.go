package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

// The headers of a request, as the Standard Webhooks specification has them:
// there are libraries that verify them in most languages.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// secretPrefix marks a secret whose bytes are given in base64.
const secretPrefix = "whsec_"

// Signature is that of a request: HMAC-SHA256 over its id, its time in seconds,
// and its body, with dots between them. It signs nothing with an empty secret,
// as anybody could.
func Signature(secret, id string, at time.Time, body []byte) (string, error) {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, secretPrefix); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			return "", errors.New("is not base64 behind " + secretPrefix)
		}
	}
	if len(key) == 0 {
		return "", errors.New("is empty")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp(at) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}

func timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
