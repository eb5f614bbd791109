#pragma once
// Lives: whose meter books are all there (meter_book.h).  A life writes its number down before it
// is given anything, and each attempt has a book before it begins; so what a killed life began has
// a book, and what has none never began.  That holds until a book is missing: then the list is
// removed, before anything relies on it.  Books and list are synced, so that it holds after a loss
// of power as well.
//   ROOT/lives   "synced LIFE LIFE ...\n", the oldest first; a list that begins with anything else
//   is of a release that synced neither, and is not believed
// Any thread; the worker's lock keeps other processes out.
#include <vector>

#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/result.h"

namespace proctor {

// `meters`: the folder of the books.
std::vector<BootId> lives_with_books(const fs::path& meters);
Status begin_life(const fs::path& meters, BootId life);
// Of an attempt of this life or an earlier one there is no book.
void books_are_not_whole(const fs::path& meters);

}  // namespace proctor
