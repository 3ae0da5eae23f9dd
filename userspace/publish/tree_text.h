// SPDX-License-Identifier: Apache-2.0
// Lines of the object tree, for people and for programs. Appends to a caller's
// buffer; one line per process, client and object. Decides nothing about what
// to show.
#pragma once

#include <string>

#include "model/actor.h"
#include "model/tree.h"
#include "publish/json.h"

namespace gpuwatch::publish {

void append_tree_line(std::string& out, const model::TreeProcess& process, const model::Actor& actor);
void append_tree_line(std::string& out, const model::TreeClient& client);
void append_tree_line(std::string& out, const model::TreeObject& object, unsigned depth);

void append_tree_json(std::string& out, const model::TreeProcess& process, const model::Actor& actor,
                      const JsonOptions& options);
void append_tree_json(std::string& out, const model::TreeProcess& process, const model::TreeClient& client);
void append_tree_json(std::string& out, const model::TreeProcess& process, const model::TreeObject& object,
                      unsigned depth);

}  // namespace gpuwatch::publish
