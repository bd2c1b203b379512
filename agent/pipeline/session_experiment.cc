#include "agent/pipeline/session_experiment.h"

#include <algorithm>
#include <utility>

#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

constexpr absl::Duration kPlaceTimeout = absl::Seconds(20);

}  // namespace

void SessionExperiment::Order(MeasureOrder order) {
  MutexLock lock(&mutex_);
  if (order_.has_value() && order.revision <= order_->revision) return;
  if (order_.has_value()) order.dry_run = order_->dry_run;
  order_ = std::move(order);
  fresh_ = true;
}

bool SessionExperiment::Waits() const {
  if (make_ == nullptr || ended_ || found_ != nullptr) return false;
  MutexLock lock(&mutex_);
  return fresh_;
}

void SessionExperiment::Locate(std::vector<ProcessImage> images, ExperimentRequest request) {
  {
    MutexLock lock(&mutex_);
    request.plan = *order_;
  }
  auto found = std::make_shared<Found>();
  const bool taken = resolver_->Post(
      [found, images = std::move(images), loops = request.plan.loops](CodeIndex& index) {
        std::vector<RankLoops> ranks;
        for (const ProcessImage& image : images)
          ranks.push_back(LocateLoops(image, loops, index, kPlaceTimeout));
        MutexLock lock(&found->mutex);
        found->ranks = std::move(ranks);
        found->done = true;
      });
  if (!taken) return;  // asked again at the next look
  {
    // One that came in meanwhile is looked for next.
    MutexLock lock(&mutex_);
    fresh_ = order_->revision != request.plan.revision;
  }
  found_ = std::move(found);
  request_ = std::move(request);
}

void SessionExperiment::Advance() {
  if (!request_.has_value() || ended_) return;
  {
    MutexLock lock(&found_->mutex);
    if (!found_->done) return;
    request_->ranks = std::move(found_->ranks);
  }
  if (experimenter_ == nullptr) {
    experimenter_ = make_();
    HandOnCharges();
    experimenter_->Begin(*std::move(request_));
  } else {
    experimenter_->Revise(*std::move(request_));
  }
  request_.reset();
  found_.reset();
}

bool SessionExperiment::Finished() const {
  if (active()) return experimenter_->Finished();
  if (make_ != nullptr) return false;
  MutexLock lock(&mutex_);
  return order_.has_value() && order_->dry_run;  // there is nobody who could answer it
}

void SessionExperiment::Charge(int64_t wall_ns, double requested_ratio) {
  charged_ns_ += wall_ns;
  requested_ratio_ = requested_ratio;
  if (active()) HandOnCharges();
}

void SessionExperiment::HandOnCharges() {
  double part = 1;
  {
    MutexLock lock(&mutex_);
    if (requested_ratio_ > 0)
      part = std::clamp(order_->budget.overhead_ratio / requested_ratio_, 0.0, 1.0);
  }
  experimenter_->Charge(
      static_cast<int64_t>(part * static_cast<double>(std::exchange(charged_ns_, 0))));
}

ExperimentUpdate SessionExperiment::Drain() {
  return active() ? experimenter_->Drain() : ExperimentUpdate{};
}

void SessionExperiment::End() {
  ended_ = true;
  if (!active()) return;
  experimenter_->End();
  ExperimentRequest late;  // its loops were not found in time: they only get the reason
  {
    MutexLock lock(&mutex_);
    if (!fresh_ && !request_.has_value()) return;
    late.plan = *order_;
    fresh_ = false;
  }
  experimenter_->Revise(std::move(late));
}

}  // namespace perfd::agent
