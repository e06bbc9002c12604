/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package serving

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/issuing"
)

// lookEvery is how often files are read again. A kubelet brings a new Secret
// within a minute.
const lookEvery = 10 * time.Second

// Directory holds a certificate that the installation provides: tls.crt,
// tls.key and ca.crt, each of which may change.
type Directory string

// Load reads the files, and says after how long to read them again.
func (d Directory) Load(context.Context) (*Material, time.Duration, error) {
	material, err := d.read()
	return material, lookEvery, err
}

func (d Directory) read() (*Material, error) {
	content := map[string][]byte{}
	for _, name := range []string{issuing.CertKey, issuing.KeyKey, issuing.AuthorityKey} {
		text, err := fs.ReadFile(os.DirFS(string(d)), name)
		if err != nil {
			return nil, fmt.Errorf("reading the webhook's certificate in %s: %w", string(d), err)
		}
		content[name] = text
	}
	return NewMaterial(content[issuing.CertKey], content[issuing.KeyKey], content[issuing.AuthorityKey])
}
