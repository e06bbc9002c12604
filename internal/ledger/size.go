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

package ledger

import (
	corev1 "k8s.io/api/core/v1"
)

// separators are what a stored reservation has besides its fields: quotes, blanks, slashes, a
// comma, when it ends, and whether it is doubtful.
const separators = 33

// Size is how many bytes a reservation takes at most as it is stored; zero for none. What
// isn't a letter, a digit or one of -._~ is stored as three bytes, or as itself.
func (r Reservation) Size() int { return r.size() }

func (r Reservation) size() int {
	if r.UID == "" {
		return 0
	}
	size := separators + amountsSize(r.Amounts)
	for _, field := range [...]string{
		string(r.UID), r.Attempt, r.From, r.Resource.Group, r.Resource.Version, r.Resource.Resource, r.Namespace, r.Name,
	} {
		size += escaped(field)
	}
	return size
}

func amountsSize(amounts corev1.ResourceList) int {
	size := 0
	for name, amount := range amounts {
		size += escaped(string(name)) + len(amount.String()) + len("=,")
	}
	return size
}

func escaped(field string) int {
	size := 0
	for i := range len(field) {
		switch c := field[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~':
			size++
		default:
			size += len("%00")
		}
	}
	return max(size, len("%2D")) // an empty field, or a dash
}
