#pragma once
// How near an answer in words is to its reference: BLEU as NLTK's sentence_bleu computes it and
// upstream's own "ROUGE", to the last bit.  Pure; any thread.
// Source: CVDP 8.5; Papineni et al. 2002.
#include <string_view>

#include "common/base/result.h"

namespace proctor::cvdp {
// Words and pairs of words, weighted equally, one reference, brevity penalty, no smoothing.
// 0 when no word is shared; with words but no pair shared about 1e-154, as NLTK has it.
double bleu2(std::string_view candidate, std::string_view reference);

// The part of the reference's word pairs that the candidate has too, each counted once above the
// line and as often as it comes below it.  kInvalid: the reference has less than two words.
Result<double> rouge2(std::string_view candidate, std::string_view reference);

// Both must be above this, not at it.
inline constexpr double kTextScoreBar = 0.40;
}  // namespace proctor::cvdp
