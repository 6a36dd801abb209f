package io.idempotence.client.feign;

import feign.RequestTemplate;
import feign.codec.Encoder;
import java.lang.reflect.Type;

/** An encoder that runs once for each call with an ID. Later requests of the call get the body and the headers that it wrote. */
record EncoderOfOneBody(Encoder delegate, CallLookup calls) implements Encoder {
    @Override
    public void encode(Object object, Type bodyType, RequestTemplate template) {
        FeignAttempt attempt = calls.attemptOf(template);
        if (attempt == null) {
            delegate.encode(object, bodyType, template);
        } else {
            attempt.call().encode(template, () -> delegate.encode(object, bodyType, template));
        }
    }
}
