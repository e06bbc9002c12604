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

package reading

import "fmt"

func missingNamespace(namespace string) string {
	return fmt.Sprintf("namespace %s doesn't exist, and which quotas will cover it isn't known: create it first, and ask again", namespace)
}

func unreadPresent(resource, namespace string) string {
	return fmt.Sprintf("You may not read %s in namespace %s: what is there is counted as if it were to be made.", resource, namespace)
}

func unreadLive(kind, namespace, name string) string {
	return fmt.Sprintf("You may not read %s %s/%s: it is counted as if it were new.", kind, namespace, name)
}
