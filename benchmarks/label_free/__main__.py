"""Whether scores without labels find the encoders that labels would choose: the study of docs/label-free.md.

    python -m benchmarks.label_free run [--results results]      search, or go on where it stopped
    python -m benchmarks.label_free records [--results results]  keep the records of the searches
    python -m benchmarks.label_free page                         render the page from the kept records

A method's own search space is sampled at random, without early stopping, one seed a trial, one core. Trial
0 has the method's defaults, as in every sweep. Scores are those after the last epoch, and those of the
untrained encoder (epoch 0), on the validation split. The "hidden" accuracy is the accuracy of the usual
probe on that split: its labels decide nothing in the searches. The test split is never read.

Asked before the runs, of each of the five scores (a score that is better when smaller is taken with its
sign turned, so that 1 always means that a better score goes with a higher accuracy):

1. Is Spearman's rho of score and accuracy above 0.5 on every dataset, over the trials of all methods? Yes,
   if the 95 % interval lies above 0.5 on every dataset; no, if it lies below 0.5 on one; else undecided.
   The interval is a bootstrap of the trials within each method (2,000 resamples, percentiles).
2. And within a method? Rho of each method on each dataset with Fisher's interval (Bonett and Wright 2000):
   how many of these lie above 0, how many below.
3. What does it cost to choose by the score? The accuracy of the trial with the best score, subtracted from
   the best accuracy, for each method and dataset, and over all methods of a dataset. Beside it, the mean
   loss of a trial picked at random. Wilcoxon's signed-rank test over the pairs of method and dataset asks
   whether the score loses less than the random pick; p values are corrected by Holm for the five scores.
   (Pairs share datasets, so they are not independent: a small p value is a hint.)
4. Does the score see what training did? The share of trials that the untrained encoder beats by the score,
   beside the share that it beats by accuracy.
5. On colour data: does the score go with the colour that the features keep? Rho of the score with the
   colour MSE (larger: less colour is kept), as in 1, and the accuracy and colour MSE of the trial with the
   best score.
6. How much of the score is the views? Rho with the smallest crop, `views.min_crop`, as in 1. Every space
   searches it, and alignment and LiDAR compare crops.
7. Failures: trials that failed have no scores, and are counted. Trials whose representation collapsed, by
   the rule of `tuning.results.collapse`, stay in 1 to 6; 1 is repeated without them.
"""

import argparse

import pyarrow.parquet as pq

from benchmarks.label_free.page import write_page
from benchmarks.label_free.searches import RECORDS, records_of, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["run", "records", "page"])
    parser.add_argument("--results", default="results", help="folder of the searches")
    given = parser.parse_args()
    if given.what == "run":
        run(given.results)
    elif given.what == "records":
        pq.write_table(records_of(given.results), RECORDS, compression="zstd")
    else:
        write_page()


if __name__ == "__main__":
    main()
