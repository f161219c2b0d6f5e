package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Parameters of argon2id: those that OWASP's cheat sheet on storing passwords names first.
const (
	argonMemoryKiB = 19 << 10
	argonPasses    = 2
	argonThreads   = 1
	argonBytes     = 32
	saltBytes      = 16
	// hashesAtOnce limits the memory that logins take.
	hashesAtOnce = 2
)

// hash returns what is kept of a password.
func (s *Service) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	sum, err := s.sum(ctx, password, salt)
	return fmt.Sprintf("argon2id$%d$%d$%s$%s", argonMemoryKiB, argonPasses, base64.RawStdEncoding.EncodeToString(salt),
		base64.RawStdEncoding.EncodeToString(sum)), err
}

// sum is the hash of a password, once it is its turn.
func (s *Service) sum(ctx context.Context, password string, salt []byte) ([]byte, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case s.hashing <- struct{}{}:
	}
	defer func() { <-s.hashing }()
	return argon2.IDKey([]byte(password), salt, argonPasses, argonMemoryKiB, argonThreads, argonBytes), nil
}

// matches reports whether a password is that of a kept text. It takes as long for a text that is none.
func (s *Service) matches(ctx context.Context, password, kept string) (bool, error) {
	salt, want := make([]byte, saltBytes), make([]byte, argonBytes)
	parts := strings.Split(kept, "$")
	known := len(parts) == 5 && parts[0] == "argon2id" && parts[1] == fmt.Sprint(argonMemoryKiB) &&
		parts[2] == fmt.Sprint(argonPasses)
	if known {
		var err, other error
		salt, err = base64.RawStdEncoding.DecodeString(parts[3])
		want, other = base64.RawStdEncoding.DecodeString(parts[4])
		known = err == nil && other == nil
	}
	got, err := s.sum(ctx, password, salt)
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1 && known, err
}
