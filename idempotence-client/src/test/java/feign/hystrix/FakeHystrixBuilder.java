package feign.hystrix;

import feign.Feign;

/** Named as the builder that is not supported is. */
public final class FakeHystrixBuilder extends Feign.Builder {}
